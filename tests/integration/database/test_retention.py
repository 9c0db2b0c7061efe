"""Retention of the engine's records of a run."""

import pytest

from infrastructure.database.runs.runs import WORKFLOW_RETENTION
from tests.integration.database.runs.run_rows import new_run

ENDED_AT = """
update dbos.workflow_status
set status = 'SUCCESS', completed_at = (extract(epoch from now() - make_interval(days => $2)) * 1000)::bigint
where workflow_uuid = $1
"""
STEP = """
insert into dbos.operation_outputs (workflow_uuid, function_id, function_name, output, retention_timestamp)
values ($1, 1, 'step', 'a tenant''s', (extract(epoch from now() - make_interval(days => $2)) * 1000)::bigint)
"""
LEFT = """
select t.name from (values ('status'), ('input'), ('steps')) as t (name)
where case t.name
    when 'status' then exists (select from dbos.workflow_status where workflow_uuid = $1)
    when 'input' then exists (select from dbos.workflow_input where workflow_uuid = $1)
    else exists (select from dbos.operation_outputs where workflow_uuid = $1)
end
"""


@pytest.fixture
def worked(runs, owner, rich):
    """A function: a run with a step that the engine has stored for this many days, ended or not."""

    async def worked(days, *, is_ended=True):
        run = (await runs.start(new_run(rich))).run
        await owner.execute(STEP, run.engine_id, days)
        if is_ended:
            await owner.execute(ENDED_AT, run.engine_id, days)
        return run

    return worked


@pytest.fixture
def left(owner):
    """A function: the engine's remaining records of a run."""

    async def left(engine_id):
        return {row["name"] for row in await owner.fetch(LEFT, engine_id)}

    return left


async def test_engine_records_of_a_run_that_ended_long_ago_are_purged(runs, worked, left):
    kept_days = WORKFLOW_RETENTION.days
    old, young = await worked(kept_days + 1), await worked(kept_days - 1)
    unended = await worked(kept_days + 1, is_ended=False)

    while await runs.purge_ended():
        pass

    assert await left(old.engine_id) == set()
    assert await left(young.engine_id) == await left(unended.engine_id) == {"status", "input", "steps"}
    assert await runs.find(old.account_id, old.id) == old


async def test_records_written_after_their_workflow_was_purged_are_purged_too(runs, owner, left):
    for name, days in (("gone long ago", 8), ("gone just now", 0)):
        await owner.execute(STEP, name, days)

    await runs.purge_ended()

    assert [await left(name) for name in ("gone long ago", "gone just now")] == [set(), {"steps"}]
    await owner.execute("delete from dbos.operation_outputs where workflow_uuid = 'gone just now'")


async def test_records_are_purged_in_batches(runs, owner, worked):
    while await runs.purge_ended():
        pass
    for _ in range(3):
        await worked(30)

    portions = [await owner.fetchval("select runs.purge_ended('7 days', 2)") for _ in range(3)]

    assert portions == [2, 1, 0]
