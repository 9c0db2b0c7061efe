"""Carrying out runs beside answering HTTP, in one process."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from core.engine.state import EngineState
from core.wiring.foundation import Foundation

Beside = Callable[[Foundation, asyncio.Event], Awaitable[None]]
"""Something that a serving process does as well, until it is told to stop."""


async def carry_out_runs(foundation: Foundation, stopping: asyncio.Event) -> None:
    """Requests are answered while the engine comes up, which takes seconds to import."""
    foundation.engine.is_wanted = True
    keep = await asyncio.to_thread(_keeper, foundation)
    await keep(stopping, foundation.engine)


def _keeper(foundation: Foundation) -> Callable[[asyncio.Event, EngineState], Awaitable[None]]:
    from core.engine.keeper import keep_engine  # noqa: PLC0415
    from core.wiring.engine import parts_on  # noqa: PLC0415

    return partial(keep_engine, parts_on(foundation))
