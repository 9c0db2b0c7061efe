"""Durable workflow engine of one process: DBOS in our database and our event loop."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import structlog
from dbos import DBOS

from core.engine.configuration import EngineDatabase, configuration
from core.engine.heartbeat import Heartbeat, OpenRegistry
from core.engine.log import relay_log
from core.engine.queues import Queue
from core.engine.recovery import OrphanedWorkflows, hand_on, stop_claiming
from core.engine.run_executor import ActiveRuns, RunExecutor, Workflow
from core.engine.system_workflows import SystemWorkflow, carry_out_routine
from features.runs.application.ports import Executions, HeartbeatReply
from shared.errors import Unavailable

STRAYS_INTERVAL_S = 5.0
LOST_INTERVAL_S = 60.0
FORGET_INTERVAL_S = 600.0

log: structlog.stdlib.BoundLogger = structlog.get_logger("engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    database: EngineDatabase
    open_registry: OpenRegistry  # called in the heartbeat's thread
    executions: Executions
    workflows: tuple[Workflow, ...]
    queues: tuple[Queue, ...]
    listens_to: tuple[str, ...]  # names of the queues this process dequeues from
    drain_s: float
    warm_up: Callable[[], Awaitable[None]]  # prepares what the first run would otherwise wait for
    routines: tuple[SystemWorkflow, ...] = ()


class Engine:
    """DBOS with its heartbeat and maintenance tasks. ``given_up`` is set when this worker was fenced: other
    workers have its runs, its own are stopped, and the caller must close the engine.
    """

    def __init__(self, parts: EngineConfig) -> None:
        self.executor = str(uuid4())
        self.given_up = asyncio.Event()
        self._parts = parts
        self._running = ActiveRuns()
        self._heart = Heartbeat(
            parts.open_registry,
            self.executor,
            host=socket.gethostname(),
            queues=sorted(parts.listens_to),
            act=self._heed,
        )
        self._is_launched = False
        self._upkeep: list[asyncio.Task[None]] = []
        self._handing_on: asyncio.Task[None] | None = None

    async def open(self) -> None:
        parts = self._parts
        # Register before claiming: workflows of an unregistered executor count as orphaned.
        await self._heart.start()
        relay_log()
        DBOS(config=configuration(parts.database, self.executor))
        execution = RunExecutor(parts.executions, self.executor, self._running)
        for workflow in parts.workflows:
            _register(workflow, execution)
        for routine in parts.routines:
            _register_routine(routine, self.executor, self._running)
        DBOS.listen_queues(parts.listens_to)
        self._is_launched = True
        DBOS.launch()  # called in the event loop, so that workflows run in it and share its connections
        for queue in parts.queues:
            await _declare(queue)
        self._upkeep = [
            asyncio.create_task(work)
            for work in (
                self._hand_on_strays(),
                self._close_lost(),
                self._tend_paused(),
                self._forget_ended(),
                self._warm_up(),
            )
        ]
        log.info("engine_running", executor=self.executor, queues=sorted(parts.listens_to))

    async def close(self) -> None:
        """Stop claiming, wait up to ``drain_s`` for active runs, and re-enqueue those that have not ended."""
        self._heart.is_draining = True
        await self._end_upkeep()
        if self._is_launched:
            stop_claiming()
        if not self.given_up.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._parts.drain_s):
                    await self._running.drain()
        await self._running.abandon()
        await self._heart.stop()
        # DBOS installed its thread pool as the loop's default executor and is about to shut it down; the rest
        # of the process and the next engine need a working one.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
        await _in_thread(partial(_end, self.executor))
        log.info("engine_stopped", executor=self.executor)

    async def _end_upkeep(self) -> None:
        for task in self._upkeep:
            task.cancel()
        await asyncio.gather(*self._upkeep, return_exceptions=True)

    def _heed(self, pulse: HeartbeatReply) -> None:
        if not pulse.is_alive:
            if not self.given_up.is_set():
                log.error("given_up_by_others", executor=self.executor)
                self._running.stop()
                self.given_up.set()
            return
        for run_id in pulse.cancels:
            self._running.cancel(run_id)
        if pulse.orphans and (self._handing_on is None or self._handing_on.done()):
            log.warning("work_handed_on", executors=sorted(pulse.orphans))
            # A task, because DBOS blocks until its database answers.
            self._handing_on = asyncio.create_task(asyncio.to_thread(hand_on, pulse.orphans))

    async def _hand_on_strays(self) -> None:
        strays = OrphanedWorkflows()
        while True:
            await asyncio.sleep(STRAYS_INTERVAL_S)
            if found := await asyncio.to_thread(strays.hand_on):
                log.warning("strays_handed_on", workflows=found)

    async def _close_lost(self) -> None:
        while True:
            await asyncio.sleep(LOST_INTERVAL_S)
            with suppress(Unavailable):
                while count := await self._parts.executions.close_lost():
                    log.error("lost_runs_closed", count=count)

    async def _tend_paused(self) -> None:
        while True:
            await asyncio.sleep(LOST_INTERVAL_S)
            with suppress(Unavailable):
                while count := await self._parts.executions.tend_paused():
                    log.info("paused_runs_expired", count=count)

    async def _forget_ended(self) -> None:
        while True:
            with suppress(Unavailable):
                while count := await self._parts.executions.forget_ended():
                    log.info("ended_work_forgotten", count=count)
            await asyncio.sleep(FORGET_INTERVAL_S)

    async def _warm_up(self) -> None:
        try:
            await self._parts.warm_up()
        except Exception as error:  # noqa: BLE001  the first run then reports the error
            log.warning("not_warmed_up", error=type(error).__name__)


@asynccontextmanager
async def running_engine(parts: EngineConfig) -> AsyncGenerator[Engine]:
    engine = Engine(parts)
    try:
        await engine.open()
        yield engine
    finally:
        await engine.close()


def _register(workflow: Workflow, execution: RunExecutor) -> None:
    async def carry_out(account_id: str, run_id: str) -> str:
        return await execution.run(workflow, account_id, run_id)

    # RunExecutor counts attempts in the run's row and ends the run when they are exhausted.
    DBOS.workflow(name=workflow.kind, max_recovery_attempts=None)(carry_out)


def _register_routine(routine: SystemWorkflow, executor: str, running: ActiveRuns) -> None:
    async def carry_out(first: str, second: str) -> str:
        return await carry_out_routine(routine, executor, running, first, second)

    DBOS.workflow(name=routine.name, max_recovery_attempts=None)(carry_out)


async def _declare(queue: Queue) -> None:
    await DBOS.register_queue_async(
        queue.name,
        worker_concurrency=queue.worker_concurrency,
        global_concurrency=queue.global_concurrency,
        polling_interval_sec=queue.poll_interval_s,
    )


def _end(executor: str) -> None:
    with suppress(Exception):  # after a failure here, other workers recover the orphaned workflows
        hand_on([executor])
    DBOS.destroy(destroy_registry=True)


async def _in_thread(call: Callable[[], None]) -> None:
    """Run ``call`` in a separate thread: threads of DBOS may wait for the loop, and their pool ends here."""
    with ThreadPoolExecutor(1, "engine-end") as thread:
        await asyncio.get_running_loop().run_in_executor(thread, call)
