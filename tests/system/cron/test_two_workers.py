"""Every job three times, once scheduled and twice by an operator, in two concurrent workers (T17)."""

import asyncio
import os
import signal
import sys
import uuid
from contextlib import asynccontextmanager

import asyncpg
import pytest

from tests.conftest import PROJECT
from tests.support import until
from tests.support.cron_jobs import JOBS
from tests.system.cron.test_jobs_twice import DUE_ACCOUNTS, MAKE_DUE, STATE

CLAIM = (
    "select scheduling.claim($1, date_trunc('minute', now()) - $2 * interval '1 minute', $3, $4, false, $5)"
)
ENDED = "select status from cron_runs where ended_at is not null"
COUNTED = """
select sum((counts ->> 'processed')::integer) as processed, sum((counts ->> 'credits')::integer) as credits
from cron_runs where job in ('monthly-renewal', 'renewal-sweep')
"""
OVERLAPPED = """
select count(*) from cron_runs as a join cron_runs as b
    on a.id < b.id and a.executor <> b.executor
    and a.started_at < b.ended_at and b.started_at < a.ended_at
"""


@asynccontextmanager
async def workers(count, environ):
    processes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "core.cli.main", "worker"),
            env={**os.environ, "PYTHONPATH": str(PROJECT / "src"), **environ},
            stderr=asyncio.subprocess.DEVNULL,
        )
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            await process.wait()


async def claim_all(owner):
    for job in JOBS:
        await owner.fetchval(CLAIM, job, 0, uuid.uuid4(), "schedule", None)
        for number in (1, 2):
            await owner.fetchval(CLAIM, job, number, uuid.uuid4(), "operator", uuid.uuid4())


@pytest.mark.battery
async def test_every_job_run_three_times_by_two_workers_takes_effect_once(spoilable_addresses, tmp_path):
    owner = await asyncpg.connect(spoilable_addresses.owner)
    ids = await owner.fetchval(DUE_ACCOUNTS)
    await owner.execute(MAKE_DUE, ids)
    await claim_all(owner)

    async def all_ended():
        rows = await owner.fetch(ENDED)
        return rows if len(rows) == 3 * len(JOBS) else None

    environ = {
        "OSLIRA_ENVIRONMENT": "local",
        "DATABASE_URL": spoilable_addresses.owner,
        "OSLIRA_DATA_DIR": str(tmp_path),
    }
    async with workers(2, environ):
        rows = await until(all_ended, timeout_s=120)

    assert {row["status"] for row in rows} == {"completed"}
    assert tuple(await owner.fetchrow(COUNTED)) == (300, 3_000)
    state = await owner.fetch(STATE, ids)
    assert {(row["is_now"], row["credits_available"], row["periods"]) for row in state} == {(True, 10, 1)}
    assert await owner.fetchval(OVERLAPPED) > 0, "they did nothing at the same time"
    assert not await owner.fetch("select * from ledger.audit()")
    await owner.close()
