import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Carry it through, whoever cancels meanwhile; the cancellation comes after it."""
    task = asyncio.ensure_future(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancellation = error
        except Exception:  # noqa: BLE001, S110  it is raised below
            pass
    if cancellation is not None:
        raise cancellation
    return task.result()
