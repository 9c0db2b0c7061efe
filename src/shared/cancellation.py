"""Protection of work that must finish although its task is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_uncancelled(work: Coroutine[Any, Any, T]) -> T:
    """Run the work to its end, then raise CancelledError if the caller was cancelled meanwhile.

    There is no time limit here; the work must limit its own time.
    """
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # mark the exception as retrieved: the caller gets the CancelledError instead
        raise cancelled
    return task.result()
