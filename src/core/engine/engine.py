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

from core.engine.configuration import EngineDatabase, configuration, relay_log
from core.engine.heartbeat import Heartbeat, OpenRegistry
from core.engine.recovery import OrphanedWorkflows, reassign, stop_claiming
from core.engine.run_executor import ActiveRuns, RunExecutor, run_system_workflow
from core.engine.workflow import Queue, SystemWorkflow, Workflow
from features.runs.application.ports import Executions, HeartbeatReply
from shared.errors import Unavailable

ORPHANS_INTERVAL_S = 5.0
STALLED_INTERVAL_S = 60.0
PURGE_INTERVAL_S = 600.0

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
    system_workflows: tuple[SystemWorkflow, ...] = ()


class Engine:
    """DBOS with its heartbeat and maintenance tasks. ``fenced`` is set when this worker was fenced: other
    workers have its runs, its own are stopped, and the caller must close the engine.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.executor = str(uuid4())
        self.fenced = asyncio.Event()
        self._config = config
        self._active = ActiveRuns()
        self._heartbeat = Heartbeat(
            config.open_registry,
            self.executor,
            host=socket.gethostname(),
            queues=sorted(config.listens_to),
            on_beat=self._on_beat,
        )
        self._is_launched = False
        self._maintenance: list[asyncio.Task[None]] = []
        self._reassigning: asyncio.Task[None] | None = None

    async def open(self) -> None:
        config = self._config
        # Register before claiming: workflows of an unregistered executor count as orphaned.
        await self._heartbeat.start()
        relay_log()
        DBOS(config=configuration(config.database, self.executor))
        executor = RunExecutor(config.executions, self.executor, self._active)
        for workflow in config.workflows:
            _register(workflow, executor)
        for system_workflow in config.system_workflows:
            _register_system_workflow(system_workflow, self.executor, self._active)
        DBOS.listen_queues(config.listens_to)
        self._is_launched = True
        DBOS.launch()  # called in the event loop, so that workflows run in it and share its connections
        for queue in config.queues:
            await _declare(queue)
        self._maintenance = [
            asyncio.create_task(task)
            for task in (
                self._reassign_orphans(),
                self._fail_stalled(),
                self._expire_paused(),
                self._purge_ended(),
                self._warm_up(),
            )
        ]
        log.info("engine_started", executor=self.executor, queues=sorted(config.listens_to))

    async def close(self) -> None:
        """Stop claiming, wait up to ``drain_s`` for active runs, and re-enqueue those that have not ended."""
        self._heartbeat.is_draining = True
        await self._stop_maintenance()
        if self._is_launched:
            stop_claiming()
        if not self.fenced.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.drain_s):
                    await self._active.drain()
        await self._active.cancel_all_and_wait()
        await self._heartbeat.stop()
        # DBOS installed its thread pool as the loop's default executor and is about to shut it down; the rest
        # of the process and the next engine need a working one.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
        await _in_thread(partial(_shut_down, self.executor))
        log.info("engine_stopped", executor=self.executor)

    async def _stop_maintenance(self) -> None:
        for task in self._maintenance:
            task.cancel()
        await asyncio.gather(*self._maintenance, return_exceptions=True)

    def _on_beat(self, reply: HeartbeatReply) -> None:
        if not reply.is_alive:
            if not self.fenced.is_set():
                log.error("worker_fenced", executor=self.executor)
                self._active.cancel_all()
                self.fenced.set()
            return
        for run_id in reply.cancels:
            self._active.cancel(run_id)
        if reply.orphans and (self._reassigning is None or self._reassigning.done()):
            log.warning("workflows_reassigned", executors=sorted(reply.orphans))
            # A task, because DBOS blocks until its database answers.
            self._reassigning = asyncio.create_task(asyncio.to_thread(reassign, reply.orphans))

    async def _reassign_orphans(self) -> None:
        orphans = OrphanedWorkflows()
        while True:
            await asyncio.sleep(ORPHANS_INTERVAL_S)
            if found := await asyncio.to_thread(orphans.reassign):
                log.warning("orphans_reassigned", workflows=found)

    async def _fail_stalled(self) -> None:
        while True:
            await asyncio.sleep(STALLED_INTERVAL_S)
            with suppress(Unavailable):
                while count := await self._config.executions.fail_stalled():
                    log.error("stalled_runs_failed", count=count)

    async def _expire_paused(self) -> None:
        while True:
            await asyncio.sleep(STALLED_INTERVAL_S)
            with suppress(Unavailable):
                while count := await self._config.executions.maintain_paused():
                    log.info("paused_runs_expired", count=count)

    async def _purge_ended(self) -> None:
        while True:
            with suppress(Unavailable):
                while count := await self._config.executions.purge_ended():
                    log.info("ended_workflows_purged", count=count)
            await asyncio.sleep(PURGE_INTERVAL_S)

    async def _warm_up(self) -> None:
        try:
            await self._config.warm_up()
        except Exception as error:  # noqa: BLE001  the first run then reports the error
            log.warning("warm_up_failed", error=type(error).__name__)


@asynccontextmanager
async def running_engine(config: EngineConfig) -> AsyncGenerator[Engine]:
    engine = Engine(config)
    try:
        await engine.open()
        yield engine
    finally:
        await engine.close()


def _register(workflow: Workflow, executor: RunExecutor) -> None:
    async def run(account_id: str, run_id: str) -> str:
        return await executor.run(workflow, account_id, run_id)

    # RunExecutor counts attempts in the run's row and ends the run when they are exhausted.
    DBOS.workflow(name=workflow.kind, max_recovery_attempts=None)(run)


def _register_system_workflow(workflow: SystemWorkflow, executor: str, active: ActiveRuns) -> None:
    async def run(first: str, second: str) -> str:
        return await run_system_workflow(workflow, executor, active, first, second)

    DBOS.workflow(name=workflow.name, max_recovery_attempts=None)(run)


async def _declare(queue: Queue) -> None:
    await DBOS.register_queue_async(
        queue.name,
        worker_concurrency=queue.worker_concurrency,
        global_concurrency=queue.global_concurrency,
        polling_interval_sec=queue.poll_interval_s,
    )


def _shut_down(executor: str) -> None:
    with suppress(Exception):  # after a failure here, other workers recover the orphaned workflows
        reassign([executor])
    DBOS.destroy(destroy_registry=True)


async def _in_thread(call: Callable[[], None]) -> None:
    """Run ``call`` in a separate thread: threads of DBOS may wait for the loop, and their pool ends here."""
    with ThreadPoolExecutor(1, "engine-shutdown") as thread:
        await asyncio.get_running_loop().run_in_executor(thread, call)
