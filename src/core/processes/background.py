"""Background services that run concurrently with the main task of a process."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import structlog

from shared.errors import Unavailable

RETRY_INTERVAL_S = 1.0

BackgroundService = Callable[[asyncio.Event], Awaitable[None]]
"""Runs until the event is set, then finishes its current work and returns."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("attendants")


async def run_services(attendants: Mapping[str, BackgroundService], stopping: asyncio.Event) -> None:
    """Run all services until ``stopping`` is set. A service that fails, for example without its database, is
    restarted.
    """
    async with asyncio.TaskGroup() as group:
        for name, attendant in attendants.items():
            group.create_task(_keep(name, attendant, stopping))


async def _keep(name: str, attendant: BackgroundService, stopping: asyncio.Event) -> None:
    while not stopping.is_set():
        try:
            await attendant(stopping)
        except Unavailable as error:
            log.warning("attendant_interrupted", attendant=name, error=error.code)
        except Exception:
            log.exception("attendant_failed", attendant=name)
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), RETRY_INTERVAL_S)
