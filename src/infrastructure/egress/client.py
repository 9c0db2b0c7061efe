"""HTTP client for tenant-supplied URLs. Each connection goes to an IP address that was resolved and checked
for it, which prevents DNS rebinding.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple, cast

import httpcore

from infrastructure.egress.lookups import egress_account
from infrastructure.egress.ssrf_guard import EgressFailed, SsrfGuard
from shared.ids import AccountId

DEADLINE_S = 15.0
BODY_BYTES_MAX = 64 * 1024
CONNECTIONS_MAX = 100


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes
    is_whole: bool  # False: truncated by size or deadline


class _GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Resolves names itself; TLS verification and the Host header still use the name."""

    def __init__(self, guard: SsrfGuard) -> None:
        self._guard = guard
        # For type checkers AnyIOBackend may be a stub, used when anyio is not installed.
        self._network = cast(httpcore.AsyncNetworkBackend, httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  signature of httpcore
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        *others, last = await self._guard.addresses(host, port)
        for address in others:
            try:
                return await self._network.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._network.connect_tcp(str(last), port, timeout, local_address, socket_options)


class EgressClient:
    """Follows no redirects, uses no proxy, keeps no connections and no cookies."""

    def __init__(
        self, guard: SsrfGuard, *, deadline_s: float = DEADLINE_S, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._guard = guard
        self._deadline_s = deadline_s
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl_context,
            max_connections=CONNECTIONS_MAX,
            max_keepalive_connections=0,
            network_backend=_GuardedNetwork(guard),
        )

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes = b"",
        *,
        account_id: AccountId | None = None,
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> Reply:
        """Raises EgressFailed. The deadline covers the whole exchange, however slowly bytes arrive.
        ``account_id``: the account whose lookup limit is used.
        """
        self._guard.check(url)
        account = egress_account.set(account_id)  # the pool connects in this task
        deadline = asyncio.get_running_loop().time() + self._deadline_s
        try:
            async with self._response_of(method, url, headers, content, deadline) as response:
                body, is_whole = await _body(response, body_bytes_max, deadline)
                names = {name.decode("latin-1").lower(): value for name, value in response.headers}
                texts = {name: value.decode("latin-1") for name, value in names.items()}
                return Reply(response.status, texts, body, is_whole)
        except (TimeoutError, httpcore.TimeoutException):
            raise EgressFailed(reason="timed_out") from None
        except httpcore.RemoteProtocolError:
            raise EgressFailed(reason="answer_malformed") from None
        except (httpcore.NetworkError, httpcore.LocalProtocolError, OSError) as error:
            raise EgressFailed(reason=_reason(error)) from None
        finally:
            egress_account.reset(account)

    @asynccontextmanager
    async def _response_of(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes, deadline: float
    ) -> AsyncGenerator[httpcore.Response]:
        request = self._pool.stream(method, url, headers=list(headers.items()), content=content)
        async with asyncio.timeout_at(deadline):
            response = await request.__aenter__()
        try:
            yield response
        finally:
            await request.__aexit__(None, None, None)

    async def close(self) -> None:
        await self._pool.aclose()


async def _body(response: httpcore.Response, bytes_max: int, deadline: float) -> tuple[bytes, bool]:
    """The body is optional: one that is too long or too slow is truncated."""
    body = bytearray()
    try:
        async with asyncio.timeout_at(deadline):
            async for part in response.aiter_stream():
                body += part
                if len(body) > bytes_max:
                    return bytes(body[:bytes_max]), False
    except (TimeoutError, httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        return bytes(body), False
    return bytes(body), True


def _reason(error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return "tls_failed"
        cause = cause.__cause__ or cause.__context__
    return "connection_failed"
