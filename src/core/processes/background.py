"""Background services that run concurrently with the main task of a process."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import structlog

from shared.errors import Unavailable

RETRY_INTERVAL_S = 1.0

BackgroundService = Callable[[asyncio.Event], Awaitable[None]]
"""Runs until the event is set, then finishes its current work and returns."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("services")


async def run_services(services: Mapping[str, BackgroundService], stopping: asyncio.Event) -> None:
    """Run all services until ``stopping`` is set. A service that fails, for example without its database, is
    restarted.
    """
    async with asyncio.TaskGroup() as group:
        for name, service in services.items():
            group.create_task(_restarting(name, service, stopping))


async def _restarting(name: str, service: BackgroundService, stopping: asyncio.Event) -> None:
    while not stopping.is_set():
        try:
            await service(stopping)
        except Unavailable as error:
            log.warning("service_interrupted", service=name, error=error.code)
        except Exception:
            log.exception("service_failed", service=name)
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), RETRY_INTERVAL_S)


@asynccontextmanager
async def running_services(services: Mapping[str, BackgroundService]) -> AsyncGenerator[None]:
    """Run all services while the context is open."""
    stopping = asyncio.Event()
    running = asyncio.create_task(run_services(services, stopping))
    try:
        yield
    finally:
        stopping.set()
        await running


def until_stopped(call: Callable[[], Awaitable[None]]) -> BackgroundService:
    """Return a service that cancels the endless ``call`` when it is stopped."""

    async def service(stopping: asyncio.Event) -> None:
        stopped = asyncio.create_task(stopping.wait())
        task = asyncio.ensure_future(call())
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (task, stopped):
                one.cancel()
            await asyncio.wait({task, stopped})
        if not task.cancelled():
            task.result()

    return service
