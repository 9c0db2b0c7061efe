"""The same question asked twice at the same time is asked once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from infrastructure.ai.uninterrupted import uninterrupted

T = TypeVar("T")


class FlightCancelled(Exception):
    """By the one who runs the flights; whoever waits did not ask for it."""


class _Flight(Generic[T]):
    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.passengers = 0


class Flights(Generic[T]):
    """A flight goes on as long as anybody waits for it, whoever began it. When the last one leaves it is
    cancelled, and has ended before that one is let go.
    """

    def __init__(self) -> None:
        self._flights: dict[bytes, _Flight[T]] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def is_under_way(self, key: bytes) -> bool:
        return key in self._flights

    async def join(self, key: bytes, depart: Callable[[], Coroutine[Any, Any, T]]) -> T:
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.ensure_future(depart()))
            flight.task.add_done_callback(lambda _: self._forget(key, flight))
        flight.passengers += 1
        try:
            return await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if flight.task.cancelled() and me is not None and not me.cancelling():
                raise FlightCancelled from None
            raise
        finally:
            flight.passengers -= 1
            if flight.passengers == 0 and not flight.task.done():
                self._forget(key, flight)
                await uninterrupted(self._end(flight.task))

    async def close(self) -> None:
        for flight in list(self._flights.values()):
            await self._end(flight.task)

    def _forget(self, key: bytes, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    async def _end(self, task: asyncio.Task[T]) -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)  # nobody waits for what it says
