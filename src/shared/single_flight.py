"""Single flight: concurrent calls with the same key share one execution."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from shared.cancellation import run_uncancelled

T = TypeVar("T")


class FlightCancelled(Exception):
    """The execution was cancelled by ``close``, not by the waiting caller."""


class SingleFlight(Generic[T]):
    """Concurrent calls with one key share one task and its result or exception.

    A cancelled caller does not affect the others. When the last caller is cancelled, the task is cancelled
    and awaited, because it may have to stop something elsewhere.
    """

    def __init__(self) -> None:
        self._under_way: dict[Hashable, _Flight[T]] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def __contains__(self, key: Hashable) -> bool:
        """Return whether ``join`` would share an existing execution."""
        return key in self._under_way

    async def join(self, key: Hashable, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Share the execution for ``key``; ``begin`` is called only if there is none."""
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
                self._forget(key, flight)  # the next caller starts a new execution
                await run_uncancelled(_end(flight.task))

    async def close(self) -> None:
        for flight in list(self._under_way.values()):
            await _end(flight.task)

    def _land(self, key: Hashable, flight: "_Flight[T]", task: asyncio.Task[T]) -> None:
        self._forget(key, flight)
        if not task.cancelled():
            task.exception()  # mark the exception as retrieved: without waiters asyncio would log it

    def _forget(self, key: Hashable, flight: "_Flight[T]") -> None:
        if self._under_way.get(key) is flight:
            del self._under_way[key]


class _Flight(Generic[T]):
    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.waiters = 0


async def _end(task: asyncio.Task[T]) -> None:
    task.cancel()
    await asyncio.wait([task])  # the result is not needed
