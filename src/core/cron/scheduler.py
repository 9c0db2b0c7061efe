"""The clock: APScheduler fires in every process that has one, and whoever claims a slot first has it carried
out, once, wherever there is a worker.
"""

# APScheduler says nothing of its types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

from core.cron.cron_expressions import CronSchedule
from core.engine.retry import until_database_answers
from features.operations.application.ports import Claim, CronClaims
from features.operations.domain.jobs import Job, Trigger
from shared.clock import Clock

# A slot is missed when it was due so long ago.
MISSED_AFTER = timedelta(minutes=5)
# While a machine sleeps its timers stand still, and go on where they stood; the clock on the wall does not.
# Woken so often, the scheduler sees what it has slept through.
WAKE_INTERVAL_S = 60

log: structlog.stdlib.BoundLogger = structlog.get_logger("cron")


class Scheduler:
    """An attendant, see ``core.processes.background``."""

    def __init__(
        self, jobs: Iterable[Job], claims: CronClaims, now: Clock, timetable: CronSchedule | None = None
    ) -> None:
        self._jobs = tuple(jobs)
        self._claims = claims
        self._now = now
        self._timetable = timetable or CronSchedule()

    async def attend(self, stopping: asyncio.Event) -> None:
        """First what nobody was there for, then every slot as it comes."""
        # Its own words for each firing are ours already.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        scheduler = self._scheduler()
        scheduler.start()
        try:
            for job in self._jobs:
                await self.offer(job, "catch_up")
            await stopping.wait()
        finally:
            scheduler.shutdown(wait=False)

    async def offer(self, job: Job, trigger: Trigger) -> datetime | None:
        """Claim the slot that was due last, if it is still to be carried out; which it was, when it was
        claimed. Of slots that were missed only the last one counts, however many there were.
        """
        now = self._now()
        slot = self._timetable.latest_until(job, now)
        if slot is None or (job.missed == "skip" and now - slot > MISSED_AFTER):
            return None
        outcome, _ = await self._claims.claim(Claim(job=job.name, slot=slot, id=uuid4(), trigger=trigger))
        if outcome != "claimed":
            return None
        log.info("slot_claimed", job=job.name, slot=slot.isoformat(), trigger=trigger)
        return slot

    async def fire(self, job: Job) -> None:
        await until_database_answers(lambda: self.offer(job, "schedule"))

    def _scheduler(self) -> AsyncIOScheduler:
        scheduler = AsyncIOScheduler(timezone=UTC)
        for job in self._jobs:
            scheduler.add_job(
                self.fire,
                self._timetable.trigger(job),
                args=(job,),
                id=job.name,
                # However late it is: what is too late to be done is for the job's own rule to say.
                misfire_grace_time=None,
                coalesce=True,
                max_instances=1,
            )
        scheduler.add_job(_wake, IntervalTrigger(seconds=WAKE_INTERVAL_S), id="wake", misfire_grace_time=None)
        return scheduler


async def _wake() -> None:
    """Nothing: the scheduler looks at its clock before and after."""
