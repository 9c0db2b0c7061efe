"""URL and key of a provider, and the client that is created for them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar


class ProviderEndpoint(NamedTuple):
    url: str  # empty: the default of the provider's client
    key: str
    is_simulated: bool = False

    def __repr__(self) -> str:
        return f"ProviderEndpoint({self.url!r})"


EndpointResolver = Callable[[], Awaitable[ProviderEndpoint]]
"""Called before every request, because a key may be rotated or a simulator restarted. Must be cheap."""


class Closable(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


@dataclass(slots=True)
class _OpenClient(Generic[C]):
    endpoint: ProviderEndpoint
    client: C
    calls: int = 0
    is_replaced: bool = False

    async def close_when_idle(self) -> None:
        if self.is_replaced and not self.calls:
            await self.client.close()


class ClientPerEndpoint(Generic[C]):
    """Client that is created at the first use and replaced when the URL or key changes. A replaced client is
    closed when its last call has ended.
    """

    def __init__(self, create: Callable[[ProviderEndpoint], C]) -> None:
        self._create = create
        self._current: _OpenClient[C] | None = None
        self._creating = asyncio.Lock()

    @asynccontextmanager
    async def borrow(self, endpoint: ProviderEndpoint) -> AsyncGenerator[C]:
        current = self._current
        if current is None or current.endpoint != endpoint:
            current = await self._open(endpoint)
        current.calls += 1
        try:
            yield current.client
        finally:
            current.calls -= 1
            await current.close_when_idle()

    async def close(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            await current.client.close()

    async def _open(self, endpoint: ProviderEndpoint) -> _OpenClient[C]:
        async with self._creating:
            old = self._current
            if old is not None and old.endpoint == endpoint:
                return old
            # In a thread, because importing an SDK and reading the CA bundle take seconds.
            client = await asyncio.to_thread(self._create, endpoint)
            self._current = current = _OpenClient(endpoint, client)
            if old is not None:
                old.is_replaced = True
                await old.close_when_idle()
            return current
