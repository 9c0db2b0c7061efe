"""Scheduler process for cron jobs."""

import asyncio
import signal

import structlog

from core.processes.background import run_services
from core.wiring.bootstrap import Runtime
from core.wiring.resources import open_foundation
from core.wiring.scheduler import scheduler_on

log: structlog.stdlib.BoundLogger = structlog.get_logger("cron")


async def run_scheduler(place: Runtime) -> None:
    """Run until SIGTERM or SIGINT."""
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_stop.set)
    async with open_foundation(place) as foundation:
        log.info("keeping_time")
        await run_services({"scheduler": scheduler_on(foundation)}, told_to_stop)
    log.info("stopped")
