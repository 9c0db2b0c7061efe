"""An engine beside something else, as in the process that serves the API too."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import structlog

from core.engine.engine import EngineParts, running_engine

RETRY_INTERVAL_S = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger("engine")


@asynccontextmanager
async def kept_engine(parts: EngineParts) -> AsyncGenerator[None]:
    """One engine after the other: when others have given one up, its process goes on under a new name."""
    stopping, is_open = asyncio.Event(), asyncio.Event()
    keeping = asyncio.create_task(_keep(parts, is_open, stopping))
    opening = asyncio.create_task(is_open.wait())
    await asyncio.wait({keeping, opening}, return_when=asyncio.FIRST_COMPLETED)
    opening.cancel()
    try:
        if keeping.done():
            await keeping
        yield
    finally:
        stopping.set()
        await keeping


async def _keep(parts: EngineParts, is_open: asyncio.Event, stopping: asyncio.Event) -> None:
    while not stopping.is_set():
        try:
            async with running_engine(parts) as engine:
                is_open.set()
                await first_of(stopping, engine.given_up)
        except Exception:
            if not is_open.is_set():
                raise  # the first has to come up; a later one may have to wait for its database
            log.exception("engine_not_running", next_attempt_s=RETRY_INTERVAL_S)
            await asyncio.sleep(RETRY_INTERVAL_S)


async def first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
