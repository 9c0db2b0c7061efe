"""Due times of cron jobs, computed by APScheduler."""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Protocol

from features.operations.application.ports import Schedule
from features.operations.domain.jobs import Job

# Search windows, tried in order, so that a frequent job does not iterate over a year of slots.
LOOKS_BACK = (timedelta(hours=1), timedelta(days=1), timedelta(days=31), timedelta(days=366))


class DueTimes(Protocol):
    """Trigger of APScheduler, which has no type stubs."""

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None: ...


class CronSchedule(Schedule):
    def trigger(self, job: Job) -> DueTimes:
        return _cron(job.schedule)

    def next_after(self, job: Job, at: datetime) -> datetime:
        # The trigger includes the given time itself.
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


@cache
def _cron(schedule: str) -> DueTimes:
    # The import takes a quarter of a second, which commands without schedules should not pay.
    from apscheduler.triggers.cron import CronTrigger  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    return CronTrigger.from_crontab(schedule, timezone=UTC)  # pyright: ignore[reportUnknownMemberType]


def _next(trigger: DueTimes, at: datetime) -> datetime:
    due = trigger.get_next_fire_time(None, at)
    assert due is not None, "our schedules have no end"
    return due.astimezone(UTC)
