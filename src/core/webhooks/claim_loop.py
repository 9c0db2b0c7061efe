"""Background service that claims items from a table and processes several of them concurrently."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimLoop(Generic[T]):
    """``claim`` receives the number of free slots. ``process`` must not raise: an item that was not processed
    is claimed again when its lease expires. ``arrived`` is set when this process stores an item; items of
    other processes are found by polling.
    """

    claim: Callable[[int], Awaitable[Sequence[T]]]
    process: Callable[[T], Awaitable[None]]
    active_max: int
    poll_interval_s: float
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, stopping: asyncio.Event) -> None:
        """Process items until ``stopping`` is set. Active items are awaited, also after an error."""
        active: set[asyncio.Future[None]] = set()
        try:
            while not stopping.is_set():
                self.arrived.clear()  # before the claim: an item stored after the claim sets it again
                free = self.active_max - len(active)
                claimed = await self.claim(free) if free else ()
                active |= {asyncio.ensure_future(self.process(item)) for item in claimed}
                # While items are waiting, a finished one is replaced without waiting for the poll.
                await self._wait(stopping, active if claimed or not free else set())
                active = {task for task in active if not task.done()}
        finally:
            await asyncio.gather(*active)

    async def _wait(self, stopping: asyncio.Event, active: set[asyncio.Future[None]]) -> None:
        events: set[asyncio.Future[Any]] = {
            asyncio.create_task(stopping.wait()),
            asyncio.create_task(self.arrived.wait()),
        }
        try:
            await asyncio.wait(
                events | active, timeout=self.poll_interval_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for event in events:
                event.cancel()
                with suppress(asyncio.CancelledError):
                    await event
