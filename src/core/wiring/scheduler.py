"""Scheduler of cron jobs as a background service."""

from core.cron.jobs import JOBS
from core.cron.scheduler import Scheduler
from core.processes.background import BackgroundService
from core.wiring.providers import utc_now
from core.wiring.resources import Resources
from infrastructure.database.operations.cron import PostgresCron


def scheduler_on(foundation: Resources) -> BackgroundService:
    return Scheduler(JOBS.values(), PostgresCron(foundation.database.admin("cron")), utc_now).attend
