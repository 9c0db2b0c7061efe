"""Carrying out runs, and keeping the time, beside answering HTTP, in one process."""

import asyncio
from collections.abc import Awaitable, Callable

from core.wiring.foundation import Foundation

Beside = Callable[[Foundation, asyncio.Event], Awaitable[None]]
"""Something that a serving process does as well, until it is told to stop."""


async def carry_out_runs(foundation: Foundation, stopping: asyncio.Event) -> None:
    """Requests are answered while the engine comes up, which takes seconds to import."""
    foundation.engine.is_wanted = True
    work = await asyncio.to_thread(_work, foundation)
    await work(stopping)


def _work(foundation: Foundation) -> Callable[[asyncio.Event], Awaitable[None]]:
    from core.attendants import attend  # noqa: PLC0415
    from core.engine.keeper import keep_engine  # noqa: PLC0415
    from core.wiring.attendants import attendants_on  # noqa: PLC0415
    from core.wiring.engine import parts_on  # noqa: PLC0415
    from core.wiring.scheduler import scheduler_on  # noqa: PLC0415

    parts = parts_on(foundation)
    attendants = {**attendants_on(foundation), "scheduler": scheduler_on(foundation)}

    async def work(stopping: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(keep_engine(parts, stopping, foundation.engine))
            group.create_task(attend(attendants, stopping))

    return work
