"""Who asks for the same at the same time is answered by one and the same piece of work."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from shared.cancellation import run_uncancelled

T = TypeVar("T")


class FlightCancelled(Exception):
    """By the one who runs the flights; whoever waits did not ask for it."""


class SingleFlight(Generic[T]):
    """Whoever is cancelled leaves, and the others do not notice. When the last one leaves the work is
    cancelled too, and waited for: it may have something to stop elsewhere. What it raises, all hear.
    """

    def __init__(self) -> None:
        self._under_way: dict[Hashable, _Flight[T]] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def __contains__(self, key: Hashable) -> bool:
        """Whether joining now would be joining somebody else's."""
        return key in self._under_way

    async def join(self, key: Hashable, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """``begin`` is called only if nobody is under way for ``key``."""
        flight = self._under_way.get(key)
        if flight is None:
            flight = self._under_way[key] = _Flight(asyncio.create_task(begin()))
            flight.task.add_done_callback(partial(self._land, key, flight))
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if flight.task.cancelled() and me is not None and not me.cancelling():
                raise FlightCancelled from None
            raise
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.task.done():
                self._forget(key, flight)  # whoever comes now begins anew
                await run_uncancelled(_end(flight.task))

    async def close(self) -> None:
        for flight in list(self._under_way.values()):
            await _end(flight.task)

    def _land(self, key: Hashable, flight: "_Flight[T]", task: asyncio.Task[T]) -> None:
        self._forget(key, flight)
        if not task.cancelled():
            task.exception()  # heard here, in case nobody waits any more; asyncio would complain

    def _forget(self, key: Hashable, flight: "_Flight[T]") -> None:
        if self._under_way.get(key) is flight:
            del self._under_way[key]


class _Flight(Generic[T]):
    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.waiters = 0


async def _end(task: asyncio.Task[T]) -> None:
    task.cancel()
    await asyncio.wait([task])  # nobody waits for what it says
