"""Cron scheduler: APScheduler fires in every scheduler process, and the first claim of a slot enqueues its
job once, for any worker.
"""

# APScheduler has no type stubs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import structlog

from core.cron.cron_expressions import CronSchedule
from features.operations.application.ports import Claim, CronClaims
from features.operations.domain.jobs import Job, Trigger
from shared.clock import Clock
from shared.retry import until_database_answers

# A slot counts as missed when it was due longer ago than this.
MISSED_AFTER = timedelta(minutes=5)
# Timers stop while a machine is suspended, but the wall clock does not. A regular wake-up makes the scheduler
# notice the slots it missed.
WAKE_INTERVAL_S = 60

log: structlog.stdlib.BoundLogger = structlog.get_logger("cron")


class Scheduler:
    """Background service that claims due slots, see ``core.processes.background``."""

    def __init__(
        self, jobs: Iterable[Job], claims: CronClaims, now: Clock, schedule: CronSchedule | None = None
    ) -> None:
        self._jobs = tuple(jobs)
        self._claims = claims
        self._now = now
        self._schedule = schedule or CronSchedule()

    async def run(self, stopping: asyncio.Event) -> None:
        """Claim missed slots first, then each slot when it is due, until ``stopping`` is set."""
        # Our own log already has an entry for each claimed slot.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        scheduler = self._scheduler()
        scheduler.start()
        try:
            for job in self._jobs:
                await self.claim_due(job, "catch_up")
            await stopping.wait()
        finally:
            scheduler.shutdown(wait=False)

    async def claim_due(self, job: Job, trigger: Trigger) -> datetime | None:
        """Claim the most recent due slot and return it. Returns None when there is none, when it is claimed
        already, or when it was missed and its job skips missed slots. Earlier slots are never executed.
        """
        now = self._now()
        slot = self._schedule.latest_until(job, now)
        if slot is None or (job.missed == "skip" and now - slot > MISSED_AFTER):
            return None
        outcome, _ = await self._claims.claim(Claim(job=job.name, slot=slot, id=uuid4(), trigger=trigger))
        if outcome != "claimed":
            return None
        log.info("slot_claimed", job=job.name, slot=slot.isoformat(), trigger=trigger)
        return slot

    async def fire(self, job: Job) -> None:
        await until_database_answers(lambda: self.claim_due(job, "schedule"))

    def _scheduler(self) -> Any:  # noqa: ANN401  APScheduler has no type stubs
        # The import takes a quarter of a second, which other processes should not pay.
        from apscheduler.schedulers.asyncio import AsyncIOScheduler  # noqa: PLC0415
        from apscheduler.triggers.interval import IntervalTrigger  # noqa: PLC0415

        scheduler = AsyncIOScheduler(timezone=UTC)
        for job in self._jobs:
            scheduler.add_job(
                self.fire,
                self._schedule.trigger(job),
                args=(job,),
                id=job.name,
                # Always fire: the job's own rule decides whether a slot is too late.
                misfire_grace_time=None,
                coalesce=True,
                max_instances=1,
            )
        scheduler.add_job(_wake, IntervalTrigger(seconds=WAKE_INTERVAL_S), id="wake", misfire_grace_time=None)
        return scheduler


async def _wake() -> None:
    """Does nothing: APScheduler reads the wall clock before and after each call."""
