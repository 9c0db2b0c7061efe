"""A slice that is added by its own folder and one entry in the list of slices reaches every process."""

import asyncio
import dataclasses
import uuid

import asyncpg
import httpx
import pytest

from core.app import create_app
from core.engine.engine import running_engine
from core.wiring.application import build
from core.wiring.bootstrap import read_runtime
from core.wiring.engine import engine_config, worker_parts
from core.wiring.slices import SLICES
from core.wiring.slices.operations import scheduler
from features.runs.domain.run import NewRun
from infrastructure.database.operations.cron import PostgresCron
from infrastructure.database.runs.runs import PostgresRuns
from tests.conftest import make_tenant
from tests.support import until
from tests.system.engine.three_steps import nothing
from tests.system.slices.toy import TOY


@pytest.fixture
async def application(spoilable_addresses, tmp_path):
    runtime = read_runtime(
        {
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": spoilable_addresses.owner,
            "OSLIRA_DATA_DIR": str(tmp_path),
        }
    )
    async with build(runtime, (*SLICES, TOY)) as application:
        yield application


@pytest.fixture
async def worker(application):
    resources = application.resources
    config = engine_config(resources, worker_parts(resources))
    async with running_engine(dataclasses.replace(config, warm_up=nothing)) as engine:
        yield engine


async def test_route_and_health_check_of_the_toy_slice_are_served(application):
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(create_app(application)), base_url="http://test"
    ) as client:
        response = await client.get("/v1/toys")

    assert response.json() == {"count": 0}
    assert (await application.health.readiness()).bindings["toys"].detail == "0 toys"


async def test_worker_executes_a_run_of_the_toy_kind(application, worker, spoilable_addresses):
    del worker
    connection = await asyncpg.connect(spoilable_addresses.owner)
    tenant = await make_tenant(connection)
    await connection.execute(
        "select ledger.grant_credits($1, 5, 'toy test', 'admin_grant')", tenant.account_id
    )
    await connection.close()
    runs = PostgresRuns(application.resources.database.admin("tests"))
    run = NewRun(
        account_id=tenant.account_id,
        id=uuid.uuid4(),
        kind="toy",
        subject={},
        credits_held=2,
        transaction_type="toy",
        queue="runs",
    )
    await runs.start(run)

    async def ended():
        found = await runs.find(tenant.account_id, run.id)
        return found.ended_at and found

    assert (await until(ended)).status == "completed"
    assert await application.dependencies["toys"].count() == 1


async def test_scheduler_claims_the_toy_job_and_the_worker_executes_it(application, worker):
    del worker
    stopping = asyncio.Event()
    scheduling = asyncio.create_task(scheduler(application.resources)(stopping))
    cron = PostgresCron(application.resources.database.admin("tests"))

    async def ended():
        found = (await cron.last_runs()).get("toy-count")
        return found if found and found.ended_at else None

    found = await until(ended)
    stopping.set()
    await scheduling

    assert (found.status, found.counts) == ("completed", {"toys": 0})


async def test_retention_job_purges_the_table_of_the_toy_slice(application, spoilable_addresses):
    connection = await asyncpg.connect(spoilable_addresses.owner)
    await connection.execute("insert into toys values ('old', now() - interval '31 days'), ('new', now())")
    await connection.close()
    job = worker_parts(application.resources).job_handlers["daily-cleanup"]
    report = await job(is_dry_run=False)

    assert report.counts["toys"] == 1
    assert await application.dependencies["toys"].count() == 1
