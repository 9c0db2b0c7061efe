"""Things worth writing down, but not worth waiting for."""

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
    """Collects items and writes them about once a second. To add one costs next to nothing and never
    fails; when the database is away the newest are kept and the oldest go.
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
        # What comes while this is written waits for the next time, or load would make it endless.
        for _ in range(0, len(self._waiting), BATCH_MAX):
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_MAX))]
            try:
                await self._write(batch)
            except Exception as error:  # noqa: BLE001  whatever it is, no request may suffer from it
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
        """Write what is left, once."""
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await self._writing
        await self._write_all()
        if self._timer is not None:  # it did not work, and there is no next time
            self._timer.cancel()
            log.error("lost", what=self._name, count=len(self._waiting))
