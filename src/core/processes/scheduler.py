"""Scheduler process for cron jobs."""

import structlog

from core.processes.background import run_services
from core.processes.signals import termination
from core.wiring.bootstrap import Runtime
from core.wiring.resources import open_resources
from core.wiring.slices.operations import scheduler

log: structlog.stdlib.BoundLogger = structlog.get_logger("cron")


async def run_scheduler(runtime: Runtime) -> None:
    """Run until SIGTERM or SIGINT."""
    stopping = termination()
    async with open_resources(runtime) as resources:
        log.info("scheduler_started")
        await run_services({"scheduler": scheduler(resources)}, stopping)
    log.info("scheduler_stopped")
