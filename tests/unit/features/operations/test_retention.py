"""Retention rules, and the purge of expired rows in batches."""

from features.leads.domain.leads import RESTORABLE_FOR
from features.operations.application.retention import Purge
from tests.support.cron_jobs import JobResources

RECORDS, CACHES, REQUEST_RECORDS = (
    JobResources(None).retention(job) for job in ("daily-cleanup", "cache-expiry", "progress-expiry")
)


class FakeRows:
    """Expired rows per table."""

    def __init__(self, **expired):
        self.expired = expired
        self.batches = []

    async def purge(self, rule):
        purged = min(self.expired.get(rule.name, 0), rule.rows_per_batch)
        self.expired[rule.name] = self.expired.get(rule.name, 0) - purged
        self.batches.append((rule.name, purged))
        return purged

    async def count(self, rule):
        return self.expired.get(rule.name, 0)


def test_every_table_has_one_rule():
    tables = [rule.table for rule in (*RECORDS, *CACHES, *REQUEST_RECORDS)]

    assert len(tables) == len(set(tables))


def test_dependent_rows_are_purged_first():
    names = [rule.name for rule in RECORDS]

    order = ["analyses", "leads", "business_profiles", "runs", "accounts"]
    assert [name for name in names if name in order] == order


def test_deleted_leads_are_stored_while_they_can_be_restored():
    periods = {rule.name: rule.retention for rule in RECORDS}

    assert periods["leads"] == periods["analyses"] == RESTORABLE_FOR


async def test_expired_rows_are_purged_in_batches_until_none_are_left():
    rows = FakeRows(accounts=45, leads=1)

    report = await Purge(rows, RECORDS).run(is_dry_run=False)

    assert {name: count for name, count in report.counts.items() if count} == {"leads": 1, "accounts": 45}
    assert [size for name, size in rows.batches if name == "accounts"] == [20, 20, 5, 0]


async def test_dry_run_only_counts():
    rows = FakeRows(completion_cache=7)

    report = await Purge(rows, CACHES).run(is_dry_run=True)

    assert (report.counts, rows.batches) == ({"completion_cache": 7, "anonymous_analyses": 0}, [])
