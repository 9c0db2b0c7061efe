"""Test jobs and fakes of the schedule, the claims and the job handler."""

from datetime import UTC, datetime

from apscheduler.triggers.cron import CronTrigger

from core.cron.cron_expressions import CronSchedule
from features.operations.domain.jobs import Job, Report


def job(schedule="0 3 * * *", missed="latest", name="a-job", time_limit_s=60.0):
    return Job(name=name, schedule=schedule, title="A job", missed=missed, time_limit_s=time_limit_s)


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class EverySecond(CronSchedule):
    def trigger(self, job):
        del job
        return CronTrigger(second="*", timezone=UTC)


class Claims:
    """In-memory claims with one row per slot."""

    def __init__(self):
        self.rows = {}

    async def claim(self, claim):
        is_first = self.rows.setdefault((claim.job, claim.slot), claim) is claim
        return ("claimed" if is_first else "existing"), None


class Counting:
    """Job handler that records its calls."""

    def __init__(self, report=None, *raises):
        self.report = report or Report(counts={"things": 1})
        self.raises = list(raises)
        self.calls = []

    async def __call__(self, *, is_dry_run):
        self.calls.append(is_dry_run)
        if self.raises:
            raise self.raises.pop(0)
        return self.report
