"""Job table, due times and missed slots (T19)."""

import asyncio
from datetime import UTC, datetime

import pytest

from core.cron.cron_expressions import CronSchedule
from core.cron.scheduler import Scheduler
from shared.errors import Unavailable
from tests.support import until
from tests.support.cron_jobs import JOBS, job_handlers
from tests.system.cron.jobs import Claims, EverySecond, at, job


def test_schedules_match_the_specification():
    asked_for = {
        "monthly-renewal": "0 3 1 * *",
        "daily-cleanup": "0 2 * * *",
        "failed-analysis-cleanup": "0 * * * *",
        "subscription-sync": "0 */6 * * *",
        "invoice-reconciliation": "0 4 * * *",
    }

    assert {name: JOBS[name].schedule for name in asked_for} == asked_for


def test_every_job_has_a_handler(cron_database):
    assert set(job_handlers(cron_database)) == set(JOBS)


@pytest.mark.parametrize(
    ("schedule", "now", "latest", "following"),
    [
        ("0 3 1 * *", "2026-03-01T02:59:59", "2026-02-01T03:00:00", "2026-03-01T03:00:00"),
        ("0 3 1 * *", "2026-03-01T03:00:00", "2026-03-01T03:00:00", "2026-04-01T03:00:00"),
        ("*/15 * * * *", "2026-03-01T00:14:59", "2026-03-01T00:00:00", "2026-03-01T00:15:00"),
        ("0 */6 * * *", "2028-02-29T23:00:00", "2028-02-29T18:00:00", "2028-03-01T00:00:00"),
        ("30 * * * *", "2026-12-31T23:59:00", "2026-12-31T23:30:00", "2027-01-01T00:30:00"),
    ],
)
def test_latest_and_next_slot_of_a_schedule(schedule, now, latest, following):
    timetable = CronSchedule()

    assert timetable.latest_until(job(schedule), at(now)) == at(latest)
    assert timetable.next_after(job(schedule), at(now)) == at(following)


def scheduler(claims, now, *jobs, schedule=None):
    return Scheduler(jobs, claims, lambda: at(now), schedule)


async def test_last_of_three_missed_slots_is_claimed_once():
    claims, daily = Claims(), job()
    awake = scheduler(claims, "2026-05-04T09:00:00", daily)

    assert await awake.claim_due(daily, "catch_up") == at("2026-05-04T03:00:00")
    assert await awake.claim_due(daily, "catch_up") is None
    assert list(claims.rows) == [("a-job", at("2026-05-04T03:00:00"))]


@pytest.mark.parametrize(("now", "claimed"), [("2026-05-04T03:04:00", 1), ("2026-05-04T03:06:00", 0)])
async def test_missed_slot_of_a_skipping_job_is_not_claimed(now, claimed):
    claims, hourly = Claims(), job("0 * * * *", missed="skip")

    await scheduler(claims, now, hourly).claim_due(hourly, "schedule")

    assert len(claims.rows) == claimed


async def test_scheduler_claims_missed_slots_at_start():
    claims, stopping = Claims(), asyncio.Event()
    attending = asyncio.create_task(scheduler(claims, "2026-05-04T09:00:00", job()).run(stopping))
    await until(lambda: claims.rows)
    stopping.set()
    await attending

    assert [claim.trigger for claim in claims.rows.values()] == ["catch_up"]


async def test_due_slot_is_claimed_after_the_database_returns(monkeypatch):
    monkeypatch.setattr("shared.retry.WAIT_S_FIRST", 0.0)
    claims, stopping = AwayAtFirst(), asyncio.Event()
    every_second = Scheduler([job()], claims, lambda: datetime.now(UTC), EverySecond())
    attending = asyncio.create_task(every_second.run(stopping))
    slot = await until(lambda: [row.slot for row in claims.rows.values() if row.trigger == "schedule"])
    stopping.set()
    await attending

    assert claims.failed_slots == slot[:1]


class DatabaseAway(Unavailable):
    code = "away"
    text = "Not available."


class AwayAtFirst(Claims):
    """Claims that fail for the first scheduled slot."""

    def __init__(self):
        super().__init__()
        self.failed_slots = []

    async def claim(self, claim):
        if claim.trigger == "schedule" and not self.failed_slots:
            self.failed_slots.append(claim.slot)
            raise DatabaseAway
        return await super().claim(claim)
