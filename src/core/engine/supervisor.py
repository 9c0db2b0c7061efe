"""Supervisor that restarts the engine inside a process with other tasks, such as the API server."""

import asyncio
from contextlib import suppress

import structlog

from core.engine.engine import EngineConfig, running_engine
from core.engine.workflow import EngineState

RETRY_INTERVAL_S = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger("engine")


async def supervise_engine(config: EngineConfig, stopping: asyncio.Event, state: EngineState) -> None:
    """Run an engine until ``stopping`` is set. A fenced engine is replaced by one with a new executor id. An
    engine that fails to start, for example without its database, is retried, so that the other tasks of the
    process continue.
    """
    state.is_wanted = True
    while not stopping.is_set():
        try:
            async with running_engine(config) as engine:
                state.executor = engine.executor
                await wait_any(stopping, engine.fenced)
                state.executor = None
        except Exception:
            log.exception("engine_start_failed", next_attempt_s=RETRY_INTERVAL_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), RETRY_INTERVAL_S)


async def wait_any(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
