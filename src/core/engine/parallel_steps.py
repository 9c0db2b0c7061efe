"""Steps side by side, as far as they have to know of each other."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


class ReplayBarrier:
    """Nobody enters before it is known of everybody whether they were done before: when one of them was
    refused, whoever was not done must not begin.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.ended_count = 0
        self._unknown = set(names)
        self._entered: set[str] = set()
        self._all_known = asyncio.Event()
        self._is_over = False

    @asynccontextmanager
    async def settling(self, name: str) -> AsyncGenerator[None]:
        """A refusal is told when everybody is known: of two that were kept, the same comes out each time."""
        try:
            yield
        except Exception:
            self._is_over = True
            self._tell(name)
            await self._all_known.wait()
            raise
        else:
            self.ended_count += 1
        finally:
            self._tell(name)

    async def enter(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        self._entered.add(name)
        self._tell(name)
        await self._all_known.wait()
        if self._is_over:
            await asyncio.Event().wait()  # whoever called it is about to be interrupted
        return await call()

    def has_entered(self, name: str) -> bool:
        """Or it was done before."""
        return name in self._entered

    def _tell(self, name: str) -> None:
        self._unknown.discard(name)
        if not self._unknown:
            self._all_known.set()
