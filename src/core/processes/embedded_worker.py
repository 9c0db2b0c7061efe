"""Worker and scheduler inside the API server process."""

import asyncio
from collections.abc import Awaitable, Callable

from core.processes.background import run_services
from core.wiring.slice import Resources
from core.wiring.slices.operations import scheduler

SideTask = Callable[[Resources, asyncio.Event], Awaitable[None]]
"""Additional task of a server process; runs until the event is set."""


async def run_worker_in_api(resources: Resources, stopping: asyncio.Event) -> None:
    """Run the worker until ``stopping`` is set. The engine is imported in a thread, because the import takes
    seconds and the server must respond meanwhile.
    """
    resources.engine.is_wanted = True
    resources.runtime.report_step("Starting the worker and the scheduler")
    run = await asyncio.to_thread(_import_engine, resources)
    await run(stopping)


def _import_engine(resources: Resources) -> Callable[[asyncio.Event], Awaitable[None]]:
    from core.engine.supervisor import supervise_engine  # noqa: PLC0415
    from core.wiring.engine import engine_config, worker_parts  # noqa: PLC0415

    parts = worker_parts(resources)
    config = engine_config(resources, parts)

    async def run(stopping: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(supervise_engine(config, stopping, resources.engine))
            group.create_task(run_services({**parts.services, "scheduler": scheduler(resources)}, stopping))

    return run
