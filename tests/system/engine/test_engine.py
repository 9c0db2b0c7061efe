"""Supervised engine, its schema migration and the privileges on its tables."""

import asyncio
import dataclasses
from contextlib import asynccontextmanager

import asyncpg
import pytest

from core.engine import supervisor as keeper
from core.engine.engine import running_engine
from core.engine.schema import migrate_engine
from core.engine.supervisor import supervise_engine
from core.engine.workflow import EngineState
from tests.support import until
from tests.system.engine.three_steps import parts

STOP = "update traffic.workers set stopped_at = now() where executor = $1"


@asynccontextmanager
async def kept_engine(place):
    """Yield the state of a supervised engine."""
    stopping, state = asyncio.Event(), EngineState()
    async with parts(place) as opened:
        keeping = asyncio.create_task(supervise_engine(opened, stopping, state))
        yield state
        stopping.set()
        await keeping


async def test_fenced_engine_restarts_with_a_new_executor_id(engine_place, engine_owner, book):
    async with kept_engine(engine_place) as state:
        old = await until(lambda: state.executor)
        await engine_owner.execute(STOP, old)
        run_id = await book.start()
        await book.ended([run_id])
        new = state.executor

    assert (await book.find(run_id)).status == "completed"
    assert new not in {old, None}
    assert state.executor is None


async def test_engine_that_fails_to_start_is_retried(engine_place, engine_owner, logs, monkeypatch):
    monkeypatch.setattr(keeper, "RETRY_INTERVAL_S", 0.01)
    await engine_owner.execute("alter table dbos.dbos_migrations rename to hidden")
    async with kept_engine(engine_place) as state:
        await until(lambda: any(entry["event"] == "engine_start_failed" for entry in logs))
        assert state.executor is None
        await engine_owner.execute("alter table dbos.hidden rename to dbos_migrations")

        assert await until(lambda: state.executor)


async def test_warm_up_runs_concurrently_and_its_failure_is_logged(engine_place, book, logs):
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def warm_up():
        reached.set()
        await go_on.wait()
        raise LookupError

    async with parts(engine_place) as opened, running_engine(dataclasses.replace(opened, warm_up=warm_up)):
        await reached.wait()
        await book.ended([await book.start()])
        go_on.set()
        warned = await until(lambda: [entry for entry in logs if entry["event"] == "warm_up_failed"])

    assert [entry["error"] for entry in warned] == ["LookupError"]


async def test_workflow_records_of_old_runs_are_purged(engine_place, engine_owner, book):
    old, young = await book.start(), await book.start()
    async with parts(engine_place) as opened:
        async with running_engine(opened):
            await book.ended([old, young])
            await until(lambda: both_succeeded(book, old, young))
        await engine_owner.execute(
            "update dbos.workflow_status set completed_at = 0 where workflow_uuid = $1", str(old)
        )
        async with running_engine(opened):
            await until(lambda: is_forgotten(book, old))

    assert (await book.find(old)).status == "completed"
    assert await book.in_engine(young) == "SUCCESS"


async def both_succeeded(book, *run_ids):
    return all([await book.in_engine(run_id) == "SUCCESS" for run_id in run_ids])


async def is_forgotten(book, run_id):
    return await book.in_engine(run_id) is None


async def test_default_thread_pool_works_after_the_engine_has_closed(engine_place):
    async with parts(engine_place) as opened, running_engine(opened):
        pass

    assert await asyncio.to_thread(lambda: "served") == "served"


async def test_missing_engine_tables_raise_and_leave_no_registered_worker(engine_place, engine_owner, book):
    await engine_owner.execute("alter table dbos.dbos_migrations rename to hidden")
    try:
        async with parts(engine_place) as opened:
            with pytest.raises(Exception, match="migrat"):
                async with running_engine(opened):
                    pass
    finally:
        await engine_owner.execute("alter table dbos.hidden rename to dbos_migrations")
    gone = await engine_owner.fetchval("select bool_and(stopped_at is not null) from traffic.workers")
    assert gone

    async with parts(engine_place) as opened, running_engine(opened):
        await book.ended([await book.start()])


async def test_concurrent_engine_migrations_succeed(spoilable_addresses):
    connection = await asyncpg.connect(spoilable_addresses.owner)
    await connection.execute("drop schema dbos cascade")
    await connection.close()

    made = await asyncio.gather(*(migrate_engine(spoilable_addresses.owner) for _ in range(4)))
    again = await migrate_engine(spoilable_addresses.owner)

    assert any(maker and maker.startswith("dbos 3.3.") for maker in made)
    assert again is None


@pytest.mark.parametrize("role", ["anon", "authenticated", "app_user"])
async def test_client_roles_have_no_privileges_on_engine_tables(engine_owner, role):
    assert not await engine_owner.fetchval("select has_schema_privilege($1, 'dbos', 'usage')", role)
    assert not await engine_owner.fetchval(
        "select has_table_privilege($1, 'dbos.workflow_status', 'select')", role
    )
    assert not await engine_owner.fetchval(
        """
        select bool_or(has_function_privilege($1, p.oid, 'execute')) from pg_proc as p
        where p.pronamespace = 'dbos'::regnamespace
        """,
        role,
    )


async def test_workflow_input_contains_only_the_run_id(engine_owner, book):
    run_id = await book.start(queue="no_worker", name="a tenant's secret")

    inputs = await engine_owner.fetchval(
        "select inputs from dbos.workflow_input where workflow_uuid = $1", str(run_id)
    )

    assert str(run_id) in inputs
    assert "secret" not in inputs
