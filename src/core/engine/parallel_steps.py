"""Coordination of parallel steps during replay."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


class ReplayBarrier:
    """Holds back every step until each step is known to have a stored result or not: when a stored result
    is a failure, the steps without a result must not start.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.ended_count = 0
        self._unknown = set(names)
        self._started: set[str] = set()
        self._all_known = asyncio.Event()
        self._is_over = False

    @asynccontextmanager
    async def track(self, name: str) -> AsyncGenerator[None]:
        """Raise a failure only after all steps are known: replay must raise the same error as the first
        execution.
        """
        try:
            yield
        except Exception:
            self._is_over = True
            self._mark_known(name)
            await self._all_known.wait()
            raise
        else:
            self.ended_count += 1
        finally:
            self._mark_known(name)

    async def wait_then_run(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        self._started.add(name)
        self._mark_known(name)
        await self._all_known.wait()
        if self._is_over:
            await asyncio.Event().wait()  # the task group is about to cancel this step
        return await call()

    def has_run(self, name: str) -> bool:
        """False when the result of the step was replayed."""
        return name in self._started

    def _mark_known(self, name: str) -> None:
        self._unknown.discard(name)
        if not self._unknown:
            self._all_known.set()
