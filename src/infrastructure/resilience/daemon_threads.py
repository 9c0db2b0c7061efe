"""Thread pool for blocking calls that does not delay the end of the process."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class DaemonThreadPool:
    """Runs at most ``size`` calls concurrently; the others wait. A call that is cancelled while it waits
    never runs. A running call cannot be stopped; its result is discarded.

    Not a ThreadPoolExecutor, because the interpreter joins its threads at exit: a hanging disk or a server
    that sends a byte per second would delay the exit.
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
        """For callers that must know when the call itself has ended."""
        call: Future[T] = Future()
        self._calls.put(partial(_fulfil, call, function))
        # A thread starts only when none is idle, so that a process with few calls has one thread.
        if not self._idle.acquire(blocking=False) and self._started < self._size:
            self._started += 1
            threading.Thread(target=self._work, name=f"{self._name}-{self._started}", daemon=True).start()
        return call

    def close(self) -> None:
        """Each thread ends after its current call. No call may be submitted afterwards."""
        for _ in range(self._started):
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._next()) is not None:
            call()
            del call  # otherwise its result would stay in memory until the next call

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
    except BaseException as error:  # noqa: BLE001  raised in the caller
        call.set_exception(error)
