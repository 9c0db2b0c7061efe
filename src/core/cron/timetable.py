"""When jobs are due, as APScheduler reads their schedules."""

# APScheduler says nothing of its types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from datetime import UTC, datetime, timedelta

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger

from features.operations.application.ports import Timetable
from features.operations.domain.jobs import Job

# Looked back so far, one after the other: nobody counts the quarters of an hour of a year.
LOOKS_BACK = (timedelta(hours=1), timedelta(days=1), timedelta(days=31), timedelta(days=366))


class CronTimetable(Timetable):
    def trigger(self, job: Job) -> BaseTrigger:
        return CronTrigger.from_crontab(job.schedule, timezone=UTC)

    def next_after(self, job: Job, at: datetime) -> datetime:
        # The trigger's own answer includes the moment it is asked for.
        return _next(self.trigger(job), at + timedelta(microseconds=1))

    def latest_until(self, job: Job, at: datetime) -> datetime | None:
        trigger = self.trigger(job)
        for look_back in LOOKS_BACK:
            latest, following = None, _next(trigger, at - look_back)
            while following <= at:
                latest, following = following, _next(trigger, following + timedelta(microseconds=1))
            if latest is not None:
                return latest
        return None


def _next(trigger: BaseTrigger, at: datetime) -> datetime:
    due: datetime | None = trigger.get_next_fire_time(None, at)
    assert due is not None, "our schedules have no end"
    return due.astimezone(UTC)
