"""Calls that block, off the event loop."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class DaemonThreadPool:
    """At most ``size`` calls at once; the others wait their turn. Whoever is cancelled while waiting is never
    run; what has begun cannot be stopped: it goes on, and nobody hears of its end.

    Not a ThreadPoolExecutor, because a process does not end before all of its threads do: a disk that hangs
    or a server that sends a byte a second would hold up the end of ours.
    """

    def __init__(self, name: str, *, size: int) -> None:
        self._name = name
        self._size = size
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0

    async def run(self, function: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self.submit(function))

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """For callers that need to know when the call itself has ended."""
        call: Future[T] = Future()
        self._calls.put(partial(_fulfil, call, function))
        # One is begun when none is idle, so that a process that seldom asks has one and not all.
        if not self._idle.acquire(blocking=False) and self._started < self._size:
            self._started += 1
            threading.Thread(target=self._work, name=f"{self._name}-{self._started}", daemon=True).start()
        return call

    def close(self) -> None:
        """Each thread ends after what it is doing. Nothing may be run afterwards."""
        for _ in range(self._started):
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._next()) is not None:
            call()
            del call  # or its result would stay in memory until the next

    def _next(self) -> Callable[[], None] | None:
        try:
            return self._calls.get_nowait()
        except Empty:
            self._idle.release()
            return self._calls.get()


def _fulfil(call: Future[T], function: Callable[[], T]) -> None:
    if not call.set_running_or_notify_cancel():
        return
    try:
        call.set_result(function())
    except BaseException as error:  # noqa: BLE001  it is for the caller to handle
        call.set_exception(error)
