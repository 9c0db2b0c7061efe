"""Heartbeat of a worker: renews its registration, receives cancellations, finds orphaned workflows.

It runs in a thread with a separate event loop: the main loop may block for seconds, for example while a
provider's SDK is imported, although the worker is alive.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress

import structlog

from features.runs.application.ports import HeartbeatReply, WorkerRegistry
from shared.errors import Unavailable

INTERVAL_S = 1.0
# Two missed heartbeats. Including the interval of the worker that notices and the poll of the queue, another
# worker resumes the run within five seconds.
GONE_AFTER_S = 2.5
REPLY_TIMEOUT_S = 2.0
RETRY_INTERVAL_S = 0.25
# An event loop blocked for this long will not recover: other workers should take its runs.
LOOP_BLOCKED_S_MAX = 60.0

OpenRegistry = Callable[[], AbstractAsyncContextManager[WorkerRegistry]]

log: structlog.stdlib.BoundLogger = structlog.get_logger("engine")


class Heartbeat:
    """Calls ``on_beat`` with every reply, in the event loop that created this object."""

    def __init__(
        self,
        open_registry: OpenRegistry,
        executor: str,
        *,
        host: str,
        queues: list[str],
        on_beat: Callable[[HeartbeatReply], None],
    ) -> None:
        self.is_draining = False
        self._open_registry = open_registry
        self._executor = executor
        self._host, self._queues = host, queues
        self._on_beat = on_beat
        self._loop = asyncio.get_running_loop()
        self._loop_seen_at = self._loop.time()
        self._registered: asyncio.Future[None] = self._loop.create_future()
        self._stopping = threading.Event()
        self._thread = ThreadPoolExecutor(1, "heartbeat")
        self._loop_task: asyncio.Future[None] | None = None
        self._is_failing = False

    async def start(self) -> None:
        """Return when the worker is registered. Raises the error of a failed registration."""
        self._loop_task = self._loop.run_in_executor(self._thread, lambda: asyncio.run(self._run()))
        await asyncio.wait({self._registered, self._loop_task}, return_when=asyncio.FIRST_COMPLETED)
        if not self._registered.done():
            await self._loop_task

    async def stop(self) -> None:
        """Deregister the worker: from now on other workers may take its runs."""
        self._stopping.set()
        if self._loop_task is not None:
            with suppress(Unavailable):  # other workers then notice the missing heartbeats
                await self._loop_task
        self._thread.shutdown(wait=False)

    async def _run(self) -> None:
        async with self._open_registry() as registry:
            await registry.register(self._executor, host=self._host, queues=self._queues)
            self._loop.call_soon_threadsafe(self._registered.set_result, None)
            while not self._stopping.is_set():
                is_received = await self._send(registry)
                wait_s = INTERVAL_S if is_received else RETRY_INTERVAL_S
                await asyncio.to_thread(self._stopping.wait, wait_s)
            await registry.deregister(self._executor)

    async def _send(self, registry: WorkerRegistry) -> bool:
        if self._loop.time() - self._loop_seen_at > LOOP_BLOCKED_S_MAX:
            log.error("event_loop_blocked", executor=self._executor)
            return True
        try:
            async with asyncio.timeout(REPLY_TIMEOUT_S):
                reply = await registry.heartbeat(
                    self._executor, gone_after_s=GONE_AFTER_S, is_draining=self.is_draining
                )
        except (Unavailable, TimeoutError) as error:
            if not self._is_failing:
                log.warning("heartbeat_failed", error=type(error).__name__)
            self._is_failing = True
            return False
        self._is_failing = False
        self._loop.call_soon_threadsafe(self._report, reply)
        return True

    def _report(self, reply: HeartbeatReply) -> None:
        self._loop_seen_at = self._loop.time()
        self._on_beat(reply)
