"""Deep analyses during a restart of PostgreSQL. The suite closes one database to all clients while runs wait
for a scrape slot; the battery restarts the whole server under load.
"""

import os
import signal
import uuid
from contextlib import asynccontextmanager
from functools import partial

import asyncpg
import pytest

from core.engine.schema import migrate_engine
from core.wiring.bootstrap import DatabaseUrls
from infrastructure.database.embedded_postgres import embedded_postgres
from infrastructure.database.migrate import migrate
from tests.conftest import make_tenant
from tests.integration.database.test_faults import persist, pid_of
from tests.support import dual_client, until
from tests.system.engine.conftest import Workers, on_plan
from tests.system.workflows.analysis_starter import NEW_BUSINESS, Desk
from tests.system.workflows.world import run_worker

TAKE_ALL_SLOTS = """
insert into traffic.leases (holder, name, expires_at)
select gen_random_uuid(), 'scrapes', 'infinity' from generate_series(1, 10)
"""
FREE_ALL_SLOTS = "delete from traffic.leases where expires_at = 'infinity'"
CUT = "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1"
ENDED = "select count(*) from runs where ended_at is not null"
STATUSES = "select status, outcome, count(*) from runs group by 1, 2"
MORE_THAN_THE_BREAKER_ALLOWS = 6
RUNS_UNDER_LOAD = 150


async def at_slot(desk, run_id):
    run = await desk.find(run_id)
    return run.steps and run.steps[-1].step == "scrape"


@asynccontextmanager
async def closed_to_clients(cluster, name):
    """Close the database to new connections and terminate the existing ones."""
    outsider = await asyncpg.connect(cluster.url("postgres"))
    await outsider.execute(f'alter database "{name}" allow_connections false')
    try:
        await outsider.fetch(CUT, name)
        yield
    finally:
        await outsider.execute(f'alter database "{name}" allow_connections true')
        await outsider.close()


@pytest.mark.usefixtures("at_work")
async def test_runs_that_lose_the_database_while_waiting_for_a_slot_complete(
    cluster, firm_addresses, make_desk, logs
):
    desk, name = await make_desk(), firm_addresses.owner.partition("?")[0].rpartition("/")[2]
    await desk.owner.execute(TAKE_ALL_SLOTS)
    runs = [await desk.start() for _ in range(MORE_THAN_THE_BREAKER_ALLOWS)]
    for run_id in runs:
        await until(partial(at_slot, desk, run_id))

    async with closed_to_clients(cluster, name):
        await until(lambda: sum(line["event"] == "step_retried" for line in logs) >= len(runs))
    await desk.session.fetch(FREE_ALL_SLOTS)
    ended = await desk.ended(*runs)

    assert {(run.status, run.outcome) for run in ended} == {("completed", "completed")}


async def desk_on(database, owner, runs_at_once):
    tenant, business_id = await make_tenant(owner), uuid.uuid4()
    await on_plan(owner, tenant, runs_at_once)
    await owner.execute("select ledger.grant_credits($1, 10000, 'g', 'purchase')", tenant.account_id)
    await owner.execute(NEW_BUSINESS, tenant.account_id, business_id, None)
    return Desk(database.admin("tests"), owner, tenant, business_id)


@pytest.mark.battery
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda each: each.name)
async def test_restart_under_load_fails_no_deep_analysis(tmp_path, simulators, how):
    await simulators.latency({"route": "/apify/run", "distribution": "fixed", "ms": 200})
    async with embedded_postgres(tmp_path / "postgres", "firm") as server:
        addresses = DatabaseUrls(
            *(server.url("firm", user) for user in ("postgres", "app_user", "app_admin"))
        )
        await migrate(addresses.owner)
        await migrate_engine(addresses.owner)
        workers = Workers(addresses, tmp_path)
        owner = await asyncpg.create_pool(addresses.owner, min_size=0, max_size=2)
        try:
            async with dual_client(addresses) as database:
                desk = await desk_on(database, owner, runs_at_once=RUNS_UNDER_LOAD)
                for _ in range(2):
                    await workers.start(does=partial(run_worker, simulators.address))
                for _ in range(RUNS_UNDER_LOAD):
                    await desk.start()
                for ended_count in (5, 40, 75):
                    await until(partial(is_reached, desk, ended_count), timeout_s=120)
                    os.kill(pid_of(tmp_path / "postgres"), how)
                await until(partial(is_reached, desk, RUNS_UNDER_LOAD), timeout_s=300)
                found = await desk.session.fetch(STATUSES)
                assert [tuple(row) for row in found] == [("completed", "completed", RUNS_UNDER_LOAD)]
                assert await desk.all_charged_once()
        finally:
            await workers.end_all()
            await owner.close()


async def is_reached(desk, ended_count):
    (row,) = await persist(lambda: desk.session.fetch(ENDED))
    return row["count"] >= ended_count
