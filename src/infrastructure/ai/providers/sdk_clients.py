"""Clients of the OpenAI and Anthropic SDKs, and classification of their errors. Imported lazily, because the
import is slow.
"""

import logging
from dataclasses import dataclass, field
from typing import Any

import httpx2

from infrastructure.ai.providers.base import ProviderError
from infrastructure.ai.providers.clients import SdkClient, SdkReply
from infrastructure.ai.providers.errors import error_of_response
from infrastructure.provider_endpoint import ProviderEndpoint
from infrastructure.tls import default_ssl_context

CONNECT_S = 5.0
CONNECTIONS_MAX = 1_000
IDLE_CONNECTIONS_MAX = 200
IDLE_S = 30.0

# Errors before the request was sent to the provider.
_BEFORE_SENDING = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)


@dataclass(frozen=True)
class BytesClient(SdkClient):
    """Sends and returns bytes through an SDK's untyped method. The typed methods traverse the whole prompt
    and build a model of the whole response; Anthropic's also warns about models that it considers old and
    rejects long outputs without a timeout.
    """

    sdk: Any = field(repr=False)  # AsyncOpenAI and AsyncAnthropic have no common base
    is_simulated: bool
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    async def post(self, path: str, body: bytes, *, headers: dict[str, str], within_s: float) -> SdkReply:
        """Raises only ProviderError."""
        options = {"headers": headers, "timeout": timeouts(within_s), **self.options}
        try:
            response: httpx2.Response = await self.sdk.post(
                path, cast_to=httpx2.Response, content=body, options=options
            )
        except Exception as failure:  # noqa: BLE001  errors of the SDK, httpx2 and anyio
            error = _error_of(failure, is_simulated=self.is_simulated)
        else:
            return SdkReply(response.content, response.headers)
        # Raised outside the handler, so that its context holds neither the request nor the provider's text.
        raise error

    async def close(self) -> None:
        await self.sdk.close()


def new_openai_client(url: str, endpoint: ProviderEndpoint) -> SdkClient:
    from openai import AsyncOpenAI  # noqa: PLC0415  not needed for other providers

    sdk = AsyncOpenAI(api_key=endpoint.key, base_url=url or None, max_retries=0, http_client=http_client())
    return BytesClient(sdk, endpoint.is_simulated, {"security": {"bearer_auth": True}})


def new_anthropic_client(url: str, endpoint: ProviderEndpoint) -> SdkClient:
    from anthropic import AsyncAnthropic  # noqa: PLC0415  not needed for other providers

    sdk = AsyncAnthropic(
        api_key=endpoint.key,
        base_url=url or None,
        max_retries=0,
        http_client=http_client(),
        open_telemetry=False,  # our usage rows contain the same data and no prompts
    )
    return BytesClient(sdk, endpoint.is_simulated)


def http_client() -> httpx2.AsyncClient:
    for chatty in ("openai", "anthropic", "httpx2", "httpcore2"):
        # At level DEBUG these loggers write whole prompts, and at INFO one line per call.
        logging.getLogger(chatty).setLevel(logging.WARNING)
    return httpx2.AsyncClient(
        limits=httpx2.Limits(
            max_connections=CONNECTIONS_MAX,
            max_keepalive_connections=IDLE_CONNECTIONS_MAX,
            keepalive_expiry=IDLE_S,
        ),
        verify=default_ssl_context(),
        timeout=CONNECT_S,  # default; each call passes its own
        follow_redirects=False,  # a redirect must not send a prompt to another host
    )


def timeouts(within_s: float) -> httpx2.Timeout:
    """Waiting for a connection and opening it take at most a quarter of the time each. When the whole time is
    over, the request has therefore been sent.
    """
    quarter_s = within_s / 4
    return httpx2.Timeout(within_s, connect=min(CONNECT_S, quarter_s), pool=quarter_s)


def _error_of(failure: Exception, *, is_simulated: bool) -> ProviderError:
    """Both SDKs wrap httpx2's error and expose the response if there is one."""
    response = getattr(failure, "response", None)
    if isinstance(response, httpx2.Response):
        return error_of_response(
            response.status_code, response.headers, response.content, is_simulated=is_simulated
        )
    cause = failure.__cause__ or failure
    is_ours = isinstance(cause, UnicodeEncodeError)  # lone surrogate, which JSON cannot encode
    if is_ours:
        kind = "invalid"
    elif isinstance(cause, httpx2.TimeoutException):
        kind = "timeout"
    elif isinstance(cause, (httpx2.TransportError, OSError)):
        kind = "connection"
    else:
        kind = "malformed_response"
    return ProviderError(
        kind,
        was_sent=not is_ours and not isinstance(cause, _BEFORE_SENDING),
        is_simulated=is_simulated,
        detail=type(cause).__name__,
    )
