"""Workers with a failing database and behind a transaction pooler."""

import asyncio
import os
import signal
import uuid
from contextlib import asynccontextmanager

import asyncpg
import pytest

from core.engine.engine import running_engine
from core.engine.schema import migrate_engine
from core.wiring.bootstrap import DatabaseUrls, read_runtime
from infrastructure.database.embedded_postgres import embedded_postgres
from infrastructure.database.migrate import migrate
from shared.ids import RunId
from tests.conftest import make_tenant
from tests.integration.database.pgbouncer import transaction_pooler
from tests.integration.database.test_faults import persist, pid_of
from tests.support import dual_client, until
from tests.system.engine.conftest import CREDITS, Book, Workers
from tests.system.engine.three_steps import NOTES, parts

CUT = """
select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""
ALIVE = "select count(*) from traffic.workers where stopped_at is null and heartbeat_at > $1"


@asynccontextmanager
async def book_on(addresses):
    async with dual_client(addresses) as database:
        owner = await asyncpg.create_pool(addresses.owner, min_size=0, max_size=2)
        await owner.execute(NOTES)
        tenant = await make_tenant(owner)
        await owner.execute(
            "select ledger.grant_credits($1, $2, 'g', 'purchase')", tenant.account_id, CREDITS
        )
        yield Book(database.admin("tests"), owner, tenant)
        await owner.close()


async def the_restart(folder, *, runs_count, kills, late_count=0):
    """Kill the database server while two workers execute runs and more runs are started. Returns the statuses
    of the ended runs, the number of fenced workers, and whether all were charged once."""
    async with embedded_postgres(folder / "postgres", "bank") as server:
        addresses = DatabaseUrls(
            owner=server.url("bank"),
            user=server.url("bank", "app_user"),
            admin=server.url("bank", "app_admin"),
        )
        await migrate(addresses.owner)
        await migrate_engine(addresses.owner)
        workers = Workers(addresses, folder)
        try:
            async with book_on(addresses) as book:
                for _ in range(2):
                    await workers.start()
                runs = [await book.start(seconds=0.3) for _ in range(runs_count)]
                await book.noted(runs[:2], "step_1")
                starting = asyncio.create_task(start_stubbornly(book, late_count))
                for _ in range(kills):
                    os.kill(pid_of(folder / "postgres"), signal.SIGKILL)
                    await persist(lambda: beating(book))
                runs += await starting
                await persist(lambda: book.ended(runs))
                statuses = {(await book.find(run_id)).status for run_id in runs}
                gone = await book.owner.fetchval(
                    "select count(*) from traffic.workers where stopped_at is not null"
                )
                return statuses, gone, await book.all_charged_once()
        finally:
            await workers.end_all()


async def start_stubbornly(book, runs_count):
    """Start runs sequentially; each is retried under the same id until the database replies."""
    run_ids = [RunId(uuid.uuid4()) for _ in range(runs_count)]
    for run_id in run_ids:
        await persist(lambda run_id=run_id: book.start(run_id=run_id))
    return run_ids


async def beating(book):
    """Wait until both workers have sent a heartbeat after this call."""
    (row,) = await book.session.fetch("select clock_timestamp() as now_at")

    async def heard():
        (counted,) = await book.session.fetch(ALIVE, row["now_at"])
        return counted["count"] == 2

    await until(heard)


@pytest.mark.battery
async def test_database_kill_under_load_fences_no_worker_and_loses_no_run(tmp_path):
    statuses, gone, are_charged_once = await the_restart(tmp_path, runs_count=8, kills=1)

    assert (statuses, gone, are_charged_once) == ({"completed"}, 0, True)


@pytest.mark.battery
async def test_repeated_database_kills_lose_no_run(tmp_path):
    statuses, gone, are_charged_once = await the_restart(tmp_path, runs_count=60, kills=4)

    assert (statuses, gone, are_charged_once) == ({"completed"}, 0, True)


async def test_terminated_connections_lose_no_active_run(engine_place, book):
    async with parts(engine_place) as opened, running_engine(opened):
        runs = [await book.start(seconds=0.1) for _ in range(6)]
        await book.noted(runs, "step_1")
        for _ in range(3):
            await until(lambda: book.owner.fetchval(CUT))
        await persist(lambda: book.ended(runs))

    assert {(await book.find(run_id)).status for run_id in runs} == {"completed"}
    assert all([(await book.notes(run_id)).count("delivered") == 1 for run_id in runs])
    assert await book.all_charged_once()


@pytest.mark.battery
async def test_runs_started_during_repeated_database_kills_complete(tmp_path):
    statuses, gone, are_charged_once = await the_restart(tmp_path, runs_count=40, kills=4, late_count=100)

    assert (statuses, gone, are_charged_once) == ({"completed"}, 0, True)


@pytest.mark.needs_program("pgbouncer")
async def test_runs_complete_behind_a_transaction_pooler(engine_addresses, book, tmp_path):
    async with transaction_pooler(engine_addresses, tmp_path) as pooled:
        place = read_runtime(
            {
                "OSLIRA_ENVIRONMENT": "local",
                "OSLIRA_DATABASE_USER_URL": pooled.user,
                "OSLIRA_DATABASE_ADMIN_URL": pooled.admin,
                "OSLIRA_DATABASE_POOLER": "transaction",
                "OSLIRA_DATA_DIR": str(tmp_path),
            }
        )
        async with parts(place) as opened, running_engine(opened):
            runs = [await book.start() for _ in range(5)]
            await book.ended(runs)

    assert {(await book.find(run_id)).status for run_id in runs} == {"completed"}
    assert await book.all_charged_once()
