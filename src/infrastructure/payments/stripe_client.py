"""Stripe API client that remembers the failure of the last call for the health check."""

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
from infrastructure.provider_endpoint import ClientPerEndpoint, EndpointResolver, ProviderEndpoint

API_VERSION = "2026-10-28.endive"
# Stripe's SDK retries, and all attempts must fit into the 25 s that a request may take.
TIMEOUT_S = 8.0
RETRIES_MAX = 2
PAGE_LENGTH = 100

log: structlog.stdlib.BoundLogger = structlog.get_logger("payments")


class Sdk(Protocol):
    """Interface of StripeSdk, whose module is imported lazily."""

    async def call(self, method: str, path: str, params: Mapping[str, Any], key: str | None) -> Json: ...

    async def close(self) -> None: ...


class StripeApi:
    """Without ``resolve_endpoint`` (no key is set) every call raises BillingNotConfigured."""

    def __init__(self, resolve_endpoint: EndpointResolver | None) -> None:
        self._resolve_endpoint = resolve_endpoint
        self._clients = ClientPerEndpoint(_new)
        self.failure: str | None = None  # of the last call, for the health check

    async def get(self, path: str, **params: Any) -> Json:  # noqa: ANN401  JSON
        return await self._call("get", path, params, None)

    async def find(self, path: str, **params: Any) -> Json | None:  # noqa: ANN401  JSON
        """Returns None if Stripe does not have the object."""
        try:
            return await self.get(path, **params)
        except StripeObjectMissing:
            return None

    async def post(self, path: str, key: str, **params: Any) -> Json:  # noqa: ANN401  JSON
        """Idempotent by ``key``."""
        return await self._call("post", path, params, key)

    async def delete(self, path: str, key: str, **params: Any) -> Json:  # noqa: ANN401  JSON
        return await self._call("delete", path, params, key)

    async def pages(self, path: str, **params: Any) -> AsyncIterator[Json]:  # noqa: ANN401  JSON
        """Iterate over a list; pages are fetched on demand."""
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
        await self._clients.close()

    async def _call(self, method: str, path: str, params: Mapping[str, Any], key: str | None) -> Json:
        if self._resolve_endpoint is None:
            raise BillingNotConfigured
        endpoint = await self._resolve_endpoint()
        try:
            async with self._clients.borrow(endpoint) as sdk:
                response = await sdk.call(method, path, params, key)
        except (PaymentsUnavailable, PaymentsRefused) as error:
            self.failure = error.reason
            log.warning("stripe_call_failed", path=path.split("/")[2], reason=error.reason)
            raise
        self.failure = None
        return response


def _new(endpoint: ProviderEndpoint) -> Sdk:
    # The import takes half a second, so processes that never call Stripe avoid it.
    from infrastructure.payments.stripe_sdk import StripeSdk  # noqa: PLC0415

    return StripeSdk(endpoint)
