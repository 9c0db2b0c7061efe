"""Paused runs: without a worker, resumed by credits, ended by a cancellation or after seven days."""

import asyncio

import pytest

from features.runs.domain.run import RunEnd
from tests.integration.database.runs.run_rows import credits_of, findings, in_queue, make_older, new_run

STEP = "waiting_for_credits"
GRANT = "select ledger.grant_credits($1, $2, gen_random_uuid()::text, 'purchase')"
NEW_ITEM = "insert into bulk_items (account_id, run_id, position, username) values ($1, $2, 1, 'ada')"


@pytest.fixture
def pause(runs, tenant, executor):
    """A function: a new run of an account without credits, paused until the account has this many."""

    async def pause(credits_needed=1, **changes):
        new = new_run(tenant, credits_held=0, uses_concurrency_slot=False, **changes)
        await runs.start(new)
        _, run = await runs.begin(new.account_id, new.id, executor=executor, attempts_max=1)
        assert await runs.pause(run, 50, step=STEP, credits_needed=credits_needed) == "done"
        return run

    return pause


@pytest.fixture
def now(runs):
    """A function: the current state of the run."""
    return lambda run: runs.find(run.account_id, run.id)


async def test_a_paused_run_has_no_executor_and_all_its_attempts(pause, now, registry, executor):
    run = await now(await pause())
    await registry.deregister(executor)

    assert (run.status, run.current_step, run.progress, run.attempt) == ("paused", STEP, 50, 0)
    assert await now(run) == run


async def test_a_paused_run_is_neither_lost_nor_stuck(runs, owner, pause, now):
    run = await pause()
    await owner.execute("delete from dbos.workflow_status where workflow_uuid = $1", str(run.id))
    await make_older(owner, run, minutes=60)

    await runs.fail_stalled()

    assert (await now(run)).status == "paused"
    assert await owner.fetchval("select scheduling.count_stalled_runs('1 minute', '15 minutes')") == 0


async def test_the_worker_that_paused_a_run_writes_no_more(runs, pause):
    run = await pause()

    assert await runs.progress(run, 60, step="late") == "fenced"
    assert await runs.pause(run, 60, step="late", credits_needed=1) == "fenced"
    assert await runs.finish(run, RunEnd(status="completed", outcome="completed")) == "fenced"


async def test_work_from_before_the_pause_does_not_begin_the_run(runs, owner, executor, tenant, pause):
    run = await pause()
    options = {"executor": executor, "attempts_max": 1}
    before, _ = await runs.begin(run.account_id, run.id, engine_id=str(run.id), **options)
    await owner.execute(GRANT, tenant.account_id, 1)
    again, resumed = await runs.begin(run.account_id, run.id, engine_id=str(run.id), **options)
    begun, _ = await runs.begin(run.account_id, run.id, engine_id=resumed.engine_id, **options)

    assert (before, again, begun) == ("superseded", "superseded", "begun")
    assert resumed.engine_id != str(run.id)


async def test_credits_resume_as_many_runs_as_they_pay_longest_paused_first(owner, tenant, pause, now):
    first, dear, second, third = await pause(), await pause(9), await pause(), await pause()

    await owner.execute(GRANT, tenant.account_id, 2)

    statuses = [(await now(run)).status for run in (first, dear, second, third)]
    assert statuses == ["queued", "paused", "queued", "paused"]
    assert await in_queue(owner, (await now(first)).engine_id) == "ENQUEUED"


async def test_credits_that_a_hold_returns_resume_a_paused_run(runs, owner, tenant, pause, now):
    await owner.execute(GRANT, tenant.account_id, 5)
    await runs.start(other := new_run(tenant))
    run = await pause(5)
    assert (await now(run)).status == "paused"

    await runs.request_cancel(tenant.account_id, other.id)

    assert (await now(run)).status == "queued"
    assert not await findings(owner, tenant)


async def test_a_paused_run_that_credits_did_not_resume_is_found_later(runs, owner, tenant, pause, now):
    run = await pause()
    async with owner.transaction():
        await owner.execute("set local session_replication_role = 'replica'")  # no trigger resumes it
        await owner.execute(GRANT, tenant.account_id, 1)
    assert (await now(run)).status == "paused"

    assert await runs.maintain_paused() == 0

    assert (await now(run)).status == "queued"


async def test_a_cancelled_run_does_not_pause(runs, executor, tenant):
    await runs.start(new := new_run(tenant, credits_held=0))
    _, run = await runs.begin(new.account_id, new.id, executor=executor, attempts_max=1)
    await runs.request_cancel(run.account_id, run.id)

    assert await runs.pause(run, 50, step=STEP, credits_needed=1) == "cancelling"


async def test_a_paused_run_ends_when_its_account_is_deleted(owner, tenant, pause, now):
    run = await pause()

    await owner.execute("update accounts set deleted_at = now() where id = $1", tenant.account_id)

    assert ((await now(run)).status, (await now(run)).outcome) == ("cancelled", "cancelled_queued")


async def test_a_run_expires_after_seven_days_of_pause_and_not_before(runs, owner, pause, now):
    young, old = await pause(kind="bulk_analysis"), await pause(kind="bulk_analysis")
    for run, age in ((young, "6 days 23:59"), (old, "7 days")):
        await owner.execute(NEW_ITEM, run.account_id, run.id)
        await owner.execute(
            f"update runs set paused_at = now() - interval '{age}' where id = $1",
            run.id,
        )

    assert sum(await asyncio.gather(*(runs.maintain_paused() for _ in range(4)))) == 1

    assert [(await now(run)).outcome for run in (young, old)] == [None, "expired"]
    items = await owner.fetch(
        "select status, outcome from bulk_items where run_id = any ($1) order by status", [young.id, old.id]
    )
    assert [tuple(item) for item in items] == [("skipped", "expired"), ("waiting", None)]


async def test_removal_of_a_run_includes_its_workflow_from_before_the_pause(owner, tenant, pause):
    run = await pause()
    await owner.execute(GRANT, tenant.account_id, 1)
    assert await in_queue(owner, run.id) == "ENQUEUED"

    await owner.execute("delete from runs where id = $1", run.id)

    assert not await owner.fetch("select from dbos.workflow_status where workflow_uuid like $1", f"{run.id}%")


async def test_racing_grants_pauses_and_cancellations_lose_no_run(runs, owner, session, tenant, pause, now):
    paused = [await pause() for _ in range(12)]

    await asyncio.gather(
        *(session.fetch(GRANT, tenant.account_id, 1) for _ in range(8)),
        *(runs.request_cancel(tenant.account_id, run.id) for run in paused[:6]),
        *(runs.maintain_paused() for _ in range(4)),
    )
    await runs.maintain_paused()

    statuses = [(await now(run)).status for run in paused]
    assert statuses[:6] == ["cancelled"] * 6
    assert set(statuses[6:]) == {"queued"}
    assert await credits_of(owner, tenant) == (8, 0)
