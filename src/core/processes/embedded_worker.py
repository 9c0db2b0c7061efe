"""Worker and scheduler inside the API server process."""

import asyncio
from collections.abc import Awaitable, Callable

from core.wiring.resources import Resources

SideTask = Callable[[Resources, asyncio.Event], Awaitable[None]]
"""Additional task of a server process; runs until the event is set."""


async def run_worker_in_api(foundation: Resources, stopping: asyncio.Event) -> None:
    """Run the worker until ``stopping`` is set. The engine is imported in a thread, because the import takes
    seconds and the server must answer requests meanwhile.
    """
    foundation.place.report_step("Starting the worker and the scheduler")
    foundation.engine.is_wanted = True
    work = await asyncio.to_thread(_work, foundation)
    await work(stopping)


def _work(foundation: Resources) -> Callable[[asyncio.Event], Awaitable[None]]:
    from core.engine.supervisor import supervise_engine  # noqa: PLC0415
    from core.processes.background import run_services  # noqa: PLC0415
    from core.wiring.attendants import attendants_on  # noqa: PLC0415
    from core.wiring.engine import parts_on  # noqa: PLC0415
    from core.wiring.scheduler import scheduler_on  # noqa: PLC0415

    parts = parts_on(foundation)
    attendants = {**attendants_on(foundation), "scheduler": scheduler_on(foundation)}

    async def work(stopping: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(supervise_engine(parts, stopping, foundation.engine))
            group.create_task(run_services(attendants, stopping))

    return work
