"""Worker process that executes runs."""

import asyncio
from collections.abc import Mapping

from core.engine.engine import EngineConfig, running_engine
from core.engine.supervisor import wait_any
from core.processes.background import BackgroundService, run_services
from core.processes.signals import termination
from core.wiring.bootstrap import Runtime
from core.wiring.engine import engine_config, worker_parts
from core.wiring.resources import open_resources


class WorkerFenced(RuntimeError):
    """Other workers considered this process dead. It has stopped; its process manager must restart it."""

    def __str__(self) -> str:
        return "This worker sent no heartbeat for too long: other workers have its runs, and it has stopped."


async def run_worker(runtime: Runtime, *, queues: tuple[str, ...] | None = None) -> None:
    """Run until SIGTERM or SIGINT. ``queues`` defaults to all queues. Raises WorkerFenced."""
    stopping = termination()
    async with open_resources(runtime) as resources:
        parts = worker_parts(resources)
        await run_engine(engine_config(resources, parts, listens_to=queues), parts.services, stopping)


async def run_engine(
    config: EngineConfig, services: Mapping[str, BackgroundService], stopping: asyncio.Event
) -> None:
    """Run the engine and the services until ``stopping`` is set. Raises WorkerFenced."""
    async with running_engine(config) as engine:
        running = asyncio.create_task(run_services(services, stopping))
        await wait_any(stopping, engine.fenced)
        is_fenced = engine.fenced.is_set()
        stopping.set()
        await running
    if is_fenced or engine.fenced.is_set():
        raise WorkerFenced
