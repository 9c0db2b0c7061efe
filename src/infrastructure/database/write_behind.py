"""Write-behind queue for rows that callers do not wait for."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

T = TypeVar("T")

WRITE_INTERVAL_S = 1.0
WAITING_MAX = 20_000
BATCH_MAX = 5_000

log: structlog.stdlib.BoundLogger = structlog.get_logger("later")


class WriteBehindQueue(Generic[T]):
    """Collects items and writes them about once a second. Adding an item is cheap and never fails; while the
    database is unavailable the oldest items are dropped first.
    """

    def __init__(self, name: str, write: Callable[[list[T]], Awaitable[None]]) -> None:
        self._name = name
        self._write = write
        self._waiting: deque[T] = deque(maxlen=WAITING_MAX)
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._is_failing = False

    def add(self, item: T) -> None:
        self._waiting.append(item)
        if self._timer is None:
            self._set_timer()

    def _set_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WRITE_INTERVAL_S, self._begin)

    def _begin(self) -> None:
        self._writing = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        # Items added during the write wait for the next one; otherwise this loop might not end under load.
        for _ in range(0, len(self._waiting), BATCH_MAX):
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_MAX))]
            try:
                await self._write(batch)
            except Exception as error:  # noqa: BLE001  no error may affect a request
                self._put_back(batch, error)
                break
            self._is_failing = False
        self._timer = None
        if self._waiting:
            self._set_timer()

    def _put_back(self, batch: list[T], error: Exception) -> None:
        room = WAITING_MAX - len(self._waiting)
        self._waiting.extendleft(reversed(batch[-room:] if room else []))
        if not self._is_failing:
            log.warning("not_written_yet", what=self._name, cause=repr(error))
        self._is_failing = True

    async def close(self) -> None:
        """Writes the remaining items, once."""
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await self._writing
        await self._write_all()
        if self._timer is not None:  # the write failed, and there is no further one
            self._timer.cancel()
            log.error("lost", what=self._name, count=len(self._waiting))
