"""Worker registry: heartbeats, fencing of silent workers, and orphaned workflows."""

import uuid

import asyncpg
import pytest

from infrastructure.database.health_checks import DatabaseHealthChecks
from infrastructure.database.runs.workers import PostgresWorkerRegistry
from tests.conftest import make_tenant
from tests.support import dual_client

GONE_AFTER_S = 10.0
SILENT = "update traffic.workers set heartbeat_at = now() - interval '1 minute' where executor = $1"
STEADY = "update traffic.workers set steady_since = now() - interval '1 minute' where executor = $1"
LEFT_WORK = """
insert into dbos.workflow_status (workflow_uuid, status, name, executor_id) values ($1, 'PENDING', 'x', $2)
"""

QUEUED = """
insert into runs (account_id, id, kind, subject, engine_id, admitted_at)
select $1, gen_random_uuid(), 'x', '{}', 'e', now() - make_interval(secs => s) from unnest($2::integer[]) as s
"""


@pytest.fixture
async def look(spoilable_addresses):
    connection = await asyncpg.connect(spoilable_addresses.owner)
    yield connection
    await connection.close()


@pytest.fixture
async def client(spoilable_addresses):
    async with dual_client(spoilable_addresses) as database:
        yield database


@pytest.fixture
def registry(client):
    return PostgresWorkerRegistry(client.admin("tests"))


@pytest.fixture
def enlist(registry, look):
    """A function: a worker that has sent heartbeats for a while."""

    async def enlist(*, is_steady=True):
        executor = str(uuid.uuid4())
        await registry.register(executor, host="here", queues=["tests"])
        if is_steady:
            await look.execute(STEADY, executor)
        return executor

    return enlist


async def beat(registry, executor):
    return await registry.heartbeat(executor, gone_after_s=GONE_AFTER_S, is_draining=False)


async def test_silent_worker_is_fenced_and_its_orphans_are_reported_until_reassigned(registry, look, enlist):
    alive, silent = await enlist(), await enlist()
    await look.execute(LEFT_WORK, "w", silent)
    await look.execute(SILENT, silent)

    first, second = await beat(registry, alive), await beat(registry, alive)

    assert first.orphans == second.orphans == {silent}
    assert not (await beat(registry, silent)).is_alive
    await look.execute("update dbos.workflow_status set executor_id = $1", alive)
    assert (await beat(registry, alive)).orphans == frozenset()


async def test_workflow_of_an_unknown_executor_is_orphaned(registry, look, enlist):
    alive = await enlist()
    await look.execute(LEFT_WORK, "w", "long forgotten")

    assert (await beat(registry, alive)).orphans == {"long forgotten"}


async def test_outage_of_the_database_for_all_workers_fences_none(registry, look, enlist):
    first, second = await enlist(), await enlist()
    for executor in (first, second):
        await look.execute(LEFT_WORK, executor, executor)
        await look.execute(SILENT, executor)

    pulses = [await beat(registry, executor) for executor in (first, first, second, first)]

    assert all(pulse.is_alive and not pulse.orphans for pulse in pulses)


async def test_new_worker_fences_no_other(registry, look, enlist):
    newcomer, silent = await enlist(is_steady=False), await enlist()
    await look.execute(SILENT, silent)

    await beat(registry, newcomer)

    assert (await beat(registry, silent)).is_alive


async def test_one_worker_at_a_time_fences_others(registry, look, enlist):
    alive, silent = await enlist(), await enlist()
    await look.execute(LEFT_WORK, "w", silent)
    await look.execute(SILENT, silent)
    async with look.transaction():
        await look.execute("select pg_advisory_xact_lock(7305803402)")
        meanwhile = await beat(registry, alive)
    afterwards = await beat(registry, alive)

    assert (meanwhile.orphans, afterwards.orphans) == (frozenset(), {silent})


async def test_worker_that_has_left_stays_fenced(registry, enlist):
    executor = await enlist()

    await registry.deregister(executor)

    assert not (await beat(registry, executor)).is_alive


async def test_health_check_counts_accepting_workers_and_admitted_runs(client, look, registry, enlist):
    alive, silent, draining, left = [await enlist() for _ in range(4)]
    await look.execute(SILENT, silent)
    await registry.heartbeat(draining, gone_after_s=GONE_AFTER_S, is_draining=True)
    await registry.deregister(left)
    account_id = (await make_tenant(look)).account_id
    await look.execute(QUEUED, account_id, [None, 5, 90])  # one run waits for its account's limit

    found = await DatabaseHealthChecks(client, []).work()

    assert (found.executors, found.queued_count) == ([alive], 2)
    assert 90 <= found.oldest_wait_s < 100
