"""Constant cost of a run with ten thousand waiting, measured in pages instead of seconds."""

import json
import statistics
import uuid

import pytest

from tests.integration.database.runs.run_rows import new_run

START = "select runs.start('{account}', '{id}', 'three_steps', '{{}}', 0, 'analysis', '{queue}')"
FINISH = "select runs.finish('{account}', '{id}', {fence}, 'completed', 'completed', null, 0)"
# The query with which the engine finds work in a queue.
NEXT = """
select workflow_uuid from dbos.workflow_status where queue_name = '{queue}' and status = 'ENQUEUED'
order by priority, created_at limit 1 for update skip locked
"""
RUNS = 10_000
SAMPLES = 40


@pytest.fixture
def pages_of(owner):
    """A function: runs an operation and returns how many pages it read."""

    async def pages_of(statement, **values):
        (row,) = await owner.fetch(f"explain (analyze, buffers, format json) {statement.format(**values)}")
        plan = json.loads(row[0])[0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]

    return pages_of


@pytest.fixture
def backlog(owner, rich):
    """A function: adds this many waiting runs, as runs.start leaves them."""

    async def backlog(count):
        await owner.execute(
            """
            insert into runs (account_id, id, kind, subject, engine_id, queue)
            select $1, id, 'three_steps', '{}', id::text, 'no_worker'
            from (select gen_random_uuid() as id from generate_series(1, $2)) as new
            """,
            rich.account_id,
            count,
        )

    return backlog


async def started(pages_of, tenant):
    """Returns the pages that each start of further runs reads."""
    return statistics.median(
        [
            await pages_of(START, account=tenant.account_id, id=uuid.uuid4(), queue="no_worker")
            for _ in range(SAMPLES)
        ]
    )


async def ended(pages_of, owner, runs, tenant, executor):
    """Returns the pages that each search for work and each end of a run read, admission included."""
    looks, ends = [], []
    for _ in range(SAMPLES):
        looks.append(await pages_of(NEXT, queue="no_worker"))
        run_id = await owner.fetchval(
            "select id from runs where account_id = $1 and admitted_at is not null and status = 'queued'"
            " order by queue_priority limit 1",
            tenant.account_id,
        )
        _, run = await runs.begin(tenant.account_id, run_id, executor=executor, attempts_max=3)
        await owner.execute(
            "update dbos.workflow_status set status = 'PENDING' where workflow_uuid = $1", run.engine_id
        )
        ends.append(await pages_of(FINISH, account=run.account_id, id=run.id, fence=run.fence))
        await owner.execute(
            "update dbos.workflow_status set status = 'SUCCESS' where workflow_uuid = $1", run.engine_id
        )
    return statistics.median(looks), statistics.median(ends)


@pytest.mark.battery
async def test_last_thousand_of_ten_thousand_runs_cost_as_much_as_the_first(
    runs, owner, rich, executor, pages_of, backlog
):
    for _ in range(20):
        await runs.start(new_run(rich, credits_held=0))
    await backlog(1_000)
    first = (await started(pages_of, rich), *await ended(pages_of, owner, runs, rich, executor))
    await backlog(RUNS - 1_000)
    await owner.execute("analyze runs")
    last = (await started(pages_of, rich), *await ended(pages_of, owner, runs, rich, executor))

    print(f"pages a start, a look and an end: {first} with 1000 waiting, {last} with {RUNS}")  # noqa: T201
    assert all(after <= 1.3 * before for before, after in zip(first, last, strict=True))
