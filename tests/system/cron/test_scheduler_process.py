"""Scheduler in a server process and in its own process, with missed slots."""

import asyncio
import os
import signal
import sys

import asyncpg
import pytest

from core.processes.embedded_worker import run_worker_in_api
from core.wiring.bootstrap import read_runtime
from core.wiring.resources import open_resources
from tests.conftest import PROJECT
from tests.support import until
from tests.support.cron_jobs import JOBS

# Jobs that skip missed slots are left out: they are caught up only when due in the last minutes.
LATEST = {job.name for job in JOBS.values() if job.missed == "latest"}
MADE_UP_FOR = "select job, status from cron_runs where trigger = 'catch_up' and job = any ($1)"


@pytest.fixture
async def away(spoilable_addresses):
    """Owner connection to an old installation on which no scheduler has run."""
    connection = await asyncpg.connect(spoilable_addresses.owner)
    await connection.execute("update scheduling.settings set catch_up_since = '2000-01-01'")
    yield connection
    await connection.close()


@pytest.mark.battery
async def test_server_process_executes_missed_slots(spoilable_addresses, away, tmp_path):
    environ = {
        "OSLIRA_ENVIRONMENT": "local",
        "DATABASE_URL": spoilable_addresses.owner,
        "OSLIRA_DATA_DIR": str(tmp_path),
    }

    async def all_ended():
        rows = await away.fetch(MADE_UP_FOR, LATEST)
        return {row["job"] for row in rows if row["status"] == "completed"} == LATEST

    async with open_resources(read_runtime(environ)) as resources:
        stopping = asyncio.Event()
        serving = asyncio.create_task(run_worker_in_api(resources, stopping))
        try:
            assert await until(all_ended, timeout_s=60)
        finally:
            stopping.set()
            await serving


@pytest.mark.battery
async def test_scheduler_process_claims_slots_without_executing_them(spoilable_addresses, away, tmp_path):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "core.cli.main", "scheduler"),
        env={
            **os.environ,
            "PYTHONPATH": str(PROJECT / "src"),
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": spoilable_addresses.owner,
            "OSLIRA_DATA_DIR": str(tmp_path),
        },
    )

    async def all_claimed():
        return {row["job"] for row in await away.fetch(MADE_UP_FOR, LATEST)} == LATEST

    try:
        await until(all_claimed, timeout_s=60)
    finally:
        process.send_signal(signal.SIGTERM)

    assert await process.wait() == 0
    assert {row["status"] for row in await away.fetch(MADE_UP_FOR, LATEST)} == {"queued"}
