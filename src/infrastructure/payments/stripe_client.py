"""One place where Stripe is called, so that what the last call found is known."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

import structlog

from features.billing.domain.errors import (
    BillingNotConfigured,
    PaymentsRefused,
    PaymentsUnavailable,
    StripeObjectMissing,
)
from infrastructure.payments.json_fields import Json, listed, text
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint

API_VERSION = "2026-10-28.endive"
# A request of ours may take 25 s; Stripe's own client tries again within it.
TIMEOUT_S = 8.0
RETRIES_MAX = 2
PAGE_LENGTH = 100

log: structlog.stdlib.BoundLogger = structlog.get_logger("payments")


class Sdk(Protocol):
    """The StripeSdk, whose module is not imported before it is needed."""

    async def call(self, method: str, path: str, params: Mapping[str, Any], key: str | None) -> Json: ...

    async def close(self) -> None: ...


class StripeApi:
    """``where`` None: nobody has told us a key, and every call says so."""

    def __init__(self, where: EndpointResolver | None) -> None:
        self._where = where
        self._made: dict[ProviderEndpoint, Sdk] = {}
        self._making = asyncio.Lock()
        self.failure: str | None = None  # of the last call, for the health page

    async def get(self, path: str, **params: Any) -> Json:  # noqa: ANN401  JSON
        return await self._call("get", path, params, None)

    async def find(self, path: str, **params: Any) -> Json | None:  # noqa: ANN401  JSON
        """None: Stripe has no such thing."""
        try:
            return await self.get(path, **params)
        except StripeObjectMissing:
            return None

    async def post(self, path: str, key: str, **params: Any) -> Json:  # noqa: ANN401  JSON
        """``key``: says what is meant, and the same again does nothing twice."""
        return await self._call("post", path, params, key)

    async def delete(self, path: str, key: str, **params: Any) -> Json:  # noqa: ANN401  JSON
        return await self._call("delete", path, params, key)

    async def pages(self, path: str, **params: Any) -> AsyncIterator[Json]:  # noqa: ANN401  JSON
        """The things of a list one by one, its pages fetched as they are needed."""
        after: dict[str, str] = {}
        while True:
            page = await self.get(path, limit=PAGE_LENGTH, **params, **after)
            things = listed({"page": page}, "page")
            for thing in things:
                yield thing
            last = text(things[-1].get("id")) if things else None
            if page.get("has_more") is not True or last is None:
                return
            after = {"starting_after": last}

    async def close(self) -> None:
        for sdk in self._made.values():
            await sdk.close()

    async def _call(self, method: str, path: str, params: Mapping[str, Any], key: str | None) -> Json:
        sdk = await self._sdk()
        try:
            answer = await sdk.call(method, path, params, key)
        except (PaymentsUnavailable, PaymentsRefused) as error:
            self.failure = error.reason
            log.warning("stripe_call_failed", path=path.split("/")[2], reason=error.reason)
            raise
        self.failure = None
        return answer

    async def _sdk(self) -> Sdk:
        if self._where is None:
            raise BillingNotConfigured
        access = await self._where()
        async with self._making:
            if access not in self._made:
                self._made[access] = await asyncio.to_thread(_new, access)
            return self._made[access]


def _new(access: ProviderEndpoint) -> Sdk:
    # Half a second, which nobody needs to wait for who never pays.
    from infrastructure.payments.stripe_sdk import StripeSdk  # noqa: PLC0415

    return StripeSdk(access)
