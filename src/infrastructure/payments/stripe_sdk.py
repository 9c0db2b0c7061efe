"""Adapter of Stripe's SDK. Import it lazily: the import takes half a second."""

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

import httpx
import stripe
from stripe import HTTPClient, StripeClient

from features.billing.domain.errors import (
    PaymentFailed,
    PaymentsRefused,
    PaymentsUnavailable,
    StripeObjectMissing,
)
from infrastructure.payments.json_fields import Json
from infrastructure.payments.stripe_client import API_VERSION, RETRIES_MAX, TIMEOUT_S, Sdk
from infrastructure.provider_endpoint import ProviderEndpoint
from infrastructure.tls import default_ssl_context
from shared.errors import DomainError

# At level INFO the SDK logs Stripe's texts and URLs with customer ids.
logging.getLogger("stripe").setLevel(logging.ERROR)

MISSING = "resource_missing"


class _Http(HTTPClient):
    """Replacement of the SDK's HTTP client, which passes the form to httpx in a deprecated way."""

    name = "httpx"

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]  a parameter of its own tests
        self._client = httpx.AsyncClient(verify=default_ssl_context(), timeout=TIMEOUT_S)

    async def request_async(
        self, method: str, url: str, headers: Mapping[str, str], post_data: str | None = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        try:
            response = await self._client.request(method, url, headers=dict(headers), content=post_data)
        except httpx.HTTPError as error:
            raise stripe.APIConnectionError(type(error).__name__, should_retry=True) from error
        return response.content, response.status_code, response.headers

    async def sleep_async(self, secs: float) -> None:
        await asyncio.sleep(secs)

    async def close_async(self) -> None:
        await self._client.aclose()


class StripeSdk(Sdk):
    """Plain JSON in and out by the SDK's raw requests, so that stripe_mapping does not depend on the SDK's
    versioned object classes.
    """

    def __init__(self, endpoint: ProviderEndpoint) -> None:
        self._http = _Http()
        self._client = StripeClient(
            endpoint.key,
            stripe_version=API_VERSION,
            base_addresses={"api": endpoint.url} if endpoint.url else None,
            max_network_retries=RETRIES_MAX,
            http_client=self._http,
        )

    async def call(self, method: str, path: str, params: Mapping[str, Any], key: str | None) -> Json:
        options = {} if key is None else {"idempotency_key": key}
        try:
            reply = await self._client.raw_request_async(  # pyright: ignore[reportUnknownMemberType]  its **params
                method, path, **params, **options
            )
        except stripe.StripeError as error:
            # No cause, because Stripe's text contains URLs and customer ids.
            raise _domain_error(error) from None
        return cast("Json", reply.data)

    async def close(self) -> None:
        await self._http.close_async()


def _domain_error(error: stripe.StripeError) -> DomainError:
    code = str(error.code or "")
    if isinstance(error, stripe.CardError):
        return PaymentFailed(reason=code or "card_declined")
    if isinstance(error, stripe.InvalidRequestError | stripe.IdempotencyError):
        is_missing = code == MISSING or error.http_status == HTTPStatus.NOT_FOUND
        return StripeObjectMissing() if is_missing else PaymentsRefused(reason=code or "request")
    reasons = {401: "key_refused", 403: "key_refused", 429: "rate_limited", None: "no_answer"}
    return PaymentsUnavailable(reason=reasons.get(error.http_status, f"answered_{error.http_status}"))
