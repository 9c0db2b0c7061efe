"""HTTP client of the SDKs and classification of its errors. Import it lazily, with the SDKs."""

import logging
from collections.abc import Awaitable

import httpx2

from infrastructure.ai.providers.base import ProviderError
from infrastructure.ai.providers.clients import SdkReply
from infrastructure.ai.providers.errors import trouble_of_status
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


async def reply_to(sent: Awaitable[httpx2.Response], *, is_simulated: bool) -> SdkReply:
    """Raises only ProviderError."""
    try:
        response = await sent
    except Exception as error:  # noqa: BLE001  errors of the SDK, httpx2 and anyio
        trouble = _trouble_of(error, is_simulated=is_simulated)
    else:
        return SdkReply(response.content, response.headers)
    # Raised outside the handler, so that its context holds neither the request nor the provider's text.
    raise trouble


def _trouble_of(error: Exception, *, is_simulated: bool) -> ProviderError:
    """Both SDKs wrap httpx2's error and expose the response if there is one."""
    response = getattr(error, "response", None)
    if isinstance(response, httpx2.Response):
        return trouble_of_status(
            response.status_code, response.headers, response.content, is_simulated=is_simulated
        )
    cause = error.__cause__ or error
    is_ours = isinstance(cause, UnicodeEncodeError)  # lone surrogate, which JSON cannot encode
    if is_ours:
        trouble = "invalid"
    elif isinstance(cause, httpx2.TimeoutException):
        trouble = "timeout"
    elif isinstance(cause, (httpx2.TransportError, OSError)):
        trouble = "connection"
    else:
        trouble = "garbled"
    return ProviderError(
        trouble,
        was_sent=not is_ours and not isinstance(cause, _BEFORE_SENDING),
        is_simulated=is_simulated,
        detail=type(cause).__name__,
    )
