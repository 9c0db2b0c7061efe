"""Atomic changes of a run's row, its credits and its position in the queue."""

import asyncio

import asyncpg
import pytest

from features.runs.domain.run import RunEnd
from tests.integration.database.runs.run_rows import credits_of, findings, in_queue, make_older, new_run

DONE = RunEnd(status="completed", outcome="completed", credits_charged=5)
STOPPED = RunEnd(status="cancelled", outcome="cancelled")
BROKEN = RunEnd(status="failed", outcome="internal_failure", error="internal_error")


async def begun(runs, executor, new):
    await runs.start(new)
    outcome, run = await runs.begin(new.account_id, new.id, executor=executor, attempts_max=3)
    assert outcome == "begun"
    return run


async def test_started_run_has_held_credits_and_a_queued_workflow(runs, owner, rich):
    started = await runs.start(new := new_run(rich))

    assert (started.outcome, started.run.status, started.credits_available) == ("started", "queued", 95)
    assert await runs.find(rich.account_id, new.id) == started.run
    assert await credits_of(owner, rich) == (95, 5)
    assert await in_queue(owner, new.id) == "ENQUEUED"


async def test_start_without_enough_credits_leaves_nothing_behind(runs, owner, tenant):
    started = await runs.start(new := new_run(tenant))

    assert (started.outcome, started.run, started.credits_available) == ("insufficient", None, 0)
    assert await runs.find(tenant.account_id, new.id) is None
    assert await in_queue(owner, new.id) is None


async def test_start_is_rolled_back_with_its_transaction(runs, session, owner, rich):
    new = new_run(rich)
    with pytest.raises(RuntimeError):
        async with session.transaction():
            assert (await runs.start(new)).outcome == "started"
            raise RuntimeError

    assert await runs.find(rich.account_id, new.id) is None
    assert await in_queue(owner, new.id) is None
    assert await credits_of(owner, rich) == (100, 0)


async def test_concurrent_starts_of_one_id_are_one_run(runs, owner, rich):
    new = new_run(rich)

    outcomes = [started.outcome for started in await asyncio.gather(*(runs.start(new) for _ in range(16)))]

    assert sorted(set(outcomes)) == ["repeated", "started"]
    assert outcomes.count("started") == 1
    assert await credits_of(owner, rich) == (95, 5)


async def test_same_id_for_other_work_is_rejected(runs, owner, rich):
    new = new_run(rich)
    await runs.start(new)

    started = await runs.start(new_run(rich, id=new.id, subject={"name": "bob"}))

    assert started.outcome == "conflicting"
    assert await credits_of(owner, rich) == (95, 5)


async def test_concurrent_duplicates_are_one_run_and_charged_once(runs, owner, rich):
    started = await asyncio.gather(*(runs.start(new_run(rich, dedup_key="ada")) for _ in range(16)))

    assert sorted(one.outcome for one in started) == ["duplicate"] * 15 + ["started"]
    assert len({one.run.id for one in started}) == 1
    assert await credits_of(owner, rich) == (95, 5)


async def test_ended_run_is_no_duplicate(runs, rich, executor):
    run = await begun(runs, executor, new_run(rich, dedup_key="ada"))
    await runs.finish(run, DONE)

    assert (await runs.start(new_run(rich, dedup_key="ada"))).outcome == "started"


async def test_a_run_without_a_price_holds_nothing(runs, owner, tenant, executor):
    run = await begun(runs, executor, new_run(tenant, credits_held=0))

    assert await runs.finish(run, RunEnd(status="completed", outcome="completed")) == "done"
    assert await credits_of(owner, tenant) == (0, 0)


@pytest.mark.parametrize(("ending", "credits_left"), [(DONE, 95), (STOPPED, 100), (BROKEN, 100)], ids=str)
async def test_end_charges_or_releases_in_the_same_transaction(
    runs, owner, rich, executor, ending, credits_left
):
    run = await begun(runs, executor, new_run(rich))

    assert await runs.finish(run, ending) == "done"
    assert await runs.finish(run, ending) == "repeated"

    after = await runs.find(run.account_id, run.id)
    assert (after.status, after.outcome, after.credits_charged) == (
        ending.status,
        ending.outcome,
        ending.credits_charged,
    )
    assert await credits_of(owner, rich) == (credits_left, 0)
    assert not await findings(owner, rich)


async def race(runs, run):
    """Runs ends, cancellations and the purge of lost runs concurrently; returns the outcomes of the ends."""
    ends = [runs.finish(run, ending) for ending in (DONE, STOPPED, BROKEN) for _ in range(16)]
    others = [runs.request_cancel(run.account_id, run.id) for _ in range(15)]
    return (await asyncio.gather(*ends, *others, runs.fail_stalled()))[: len(ends)]


async def one_end_each(runs, owner, rich, executor, *, races):
    for _ in range(races):
        outcomes = await race(runs, await begun(runs, executor, new_run(rich)))
        assert outcomes.count("done") == 1
        assert set(outcomes) <= {"done", "repeated", "ended"}
    charged = await owner.fetchval(
        "select sum(credits_charged) from runs where account_id = $1", rich.account_id
    )
    return not await findings(owner, rich) and await credits_of(owner, rich) == (100 - charged, 0)


async def test_one_of_many_concurrent_ends_wins(runs, owner, rich, executor):
    assert await one_end_each(runs, owner, rich, executor, races=4)


@pytest.mark.battery
async def test_one_of_many_concurrent_ends_wins_every_time(runs, owner, rich, executor):
    await owner.execute("select ledger.grant_credits($1, 10000, 'more', 'admin_grant')", rich.account_id)
    for _ in range(20):
        await one_end_each(runs, owner, rich, executor, races=50)

    assert not await findings(owner, rich)


async def test_failed_delivery_charges_nothing(runs, owner, rich, executor):
    run = await begun(runs, executor, new_run(rich))

    async def fails():
        raise LookupError

    with pytest.raises(LookupError):
        await runs.finish(run, DONE, fails)

    assert (await runs.find(run.account_id, run.id)).status == "processing"
    assert await credits_of(owner, rich) == (95, 5)


async def test_second_end_delivers_nothing(runs, rich, executor):
    run = await begun(runs, executor, new_run(rich))
    await runs.finish(run, STOPPED)
    delivered = []

    async def deliver():
        delivered.append(run.id)

    assert await runs.finish(run, DONE, deliver) == "ended"
    assert delivered == []


async def test_hold_released_manually_cannot_be_charged(runs, owner, rich, executor):
    run = await begun(runs, executor, new_run(rich))
    await owner.execute("select ledger.release_hold($1, $2)", run.account_id, run.hold_reference)

    assert await runs.finish(run, DONE) == "unpaid"
    after = await runs.find(run.account_id, run.id)
    assert (after.status, after.error, after.credits_charged) == ("failed", "hold_closed", 0)
    assert not await findings(owner, rich)


async def test_superseded_attempt_changes_nothing(runs, rich, executor):
    run = await begun(runs, executor, new_run(rich))
    _, later = await runs.begin(run.account_id, run.id, executor=executor, attempts_max=3)

    assert await runs.progress(run, 50, step="late") == "fenced"
    assert await runs.finish(run, DONE) == "fenced"
    assert await runs.find(run.account_id, run.id) == later
    assert await runs.finish(later, DONE) == "done"


async def test_fenced_executor_neither_begins_nor_writes(runs, rich, registry, executor):
    run = await begun(runs, executor, new_run(rich))
    waiting = new_run(rich)
    await runs.start(waiting)
    await registry.deregister(executor)

    assert await runs.progress(run, 50, step="late") == "fenced"
    assert await runs.finish(run, DONE) == "fenced"
    outcome, _ = await runs.begin(rich.account_id, waiting.id, executor=executor, attempts_max=3)
    assert outcome == "fenced"
    assert (await runs.find(rich.account_id, run.id)).status == "processing"


async def test_run_with_too_many_attempts_reports_it(runs, rich, executor):
    run = await begun(runs, executor, new_run(rich))

    outcomes = [
        (await runs.begin(run.account_id, run.id, executor=executor, attempts_max=3))[0] for _ in range(3)
    ]

    assert outcomes == ["begun", "begun", "exhausted"]


async def test_progress_never_decreases_and_every_change_has_its_version(runs, rich, executor):
    run = await begun(runs, executor, new_run(rich))

    await runs.progress(run, 60, step="late")
    await runs.progress(run, 20, step="early")
    await runs.progress(run, 20, step="early")

    after = await runs.find(run.account_id, run.id)
    assert (after.progress, after.current_step, after.version) == (60, "early", run.version + 2)
    assert after.updated_at > run.updated_at


async def test_queued_run_is_cancelled_at_once_and_leaves_the_queue(runs, owner, rich):
    await runs.start(new := new_run(rich))

    outcome, run = await runs.request_cancel(rich.account_id, new.id)

    assert (outcome, run.status, run.outcome) == ("cancelled", "cancelled", "cancelled_queued")
    assert await in_queue(owner, new.id) == "CANCELLED"
    assert await credits_of(owner, rich) == (100, 0)
    assert (await runs.request_cancel(rich.account_id, new.id))[0] == "ended"


async def test_cancellation_of_an_active_run_reaches_its_executor(runs, rich, registry, executor):
    run = await begun(runs, executor, new_run(rich))

    first, asked = await runs.request_cancel(run.account_id, run.id)
    again, _ = await runs.request_cancel(run.account_id, run.id)

    assert (first, again, asked.should_cancel, asked.status) == ("requested", "repeated", True, "processing")
    pulse = await registry.heartbeat(executor, gone_after_s=60, is_draining=False)
    assert pulse.cancels == {run.id}


async def test_other_account_does_not_find_a_run(runs, rich, other_tenant):
    await runs.start(new := new_run(rich))

    assert await runs.request_cancel(other_tenant.account_id, new.id) == ("unknown", None)
    assert await runs.find(other_tenant.account_id, new.id) is None


async def test_run_lost_by_the_engine_ends_and_costs_nothing(runs, owner, rich, executor):
    lost, young = await begun(runs, executor, new_run(rich)), await begun(runs, executor, new_run(rich))
    await owner.execute(
        "delete from dbos.workflow_status where workflow_uuid = any ($1)", [str(lost.id), str(young.id)]
    )
    await make_older(owner, lost, minutes=5)

    await runs.fail_stalled()

    ended = await runs.find(lost.account_id, lost.id)
    assert (ended.status, ended.error, ended.credits_charged) == ("failed", "lost", 0)
    assert (await runs.find(young.account_id, young.id)).status == "processing"
    assert await credits_of(owner, rich) == (95, 5)


async def test_run_without_progress_for_fifteen_minutes_ends_once_and_costs_nothing(
    runs, owner, rich, executor
):
    stuck, slow = await begun(runs, executor, new_run(rich)), await begun(runs, executor, new_run(rich))
    paused = await begun(runs, executor, new_run(rich))
    await runs.pause(paused, 10, step="waiting_for_credits", credits_needed=1_000)
    for run, minutes in ((stuck, 16), (slow, 14), (paused, 60)):
        await make_older(owner, run, minutes=minutes)

    closed = await asyncio.gather(*(runs.fail_stalled() for _ in range(4)))

    ended = await runs.find(stuck.account_id, stuck.id)
    assert sum(closed) == 1
    assert (ended.status, ended.outcome, ended.credits_charged) == ("failed", "timeout", 0)
    assert await runs.finish(stuck, DONE) == "ended"
    assert [(await runs.find(run.account_id, run.id)).is_ended for run in (slow, paused)] == [False] * 2
    assert await credits_of(owner, rich) == (90, 10)


async def the_sweep_against_the_end(runs, owner, rich, executor, *, races):
    """Stuck runs end at the moment they are closed as stuck; returns how often their own end was first."""
    ended_count = 0
    for _ in range(races):
        run, delivered = await begun(runs, executor, new_run(rich)), []
        await make_older(owner, run, minutes=16)

        async def deliver(delivered=delivered):
            delivered.append(True)

        sweeps = [runs.fail_stalled() for _ in range(2)]
        outcome, *_ = await asyncio.gather(runs.finish(run, DONE, deliver), *sweeps)
        after = await runs.find(run.account_id, run.id)
        ends = {
            "done": ("completed", "completed", 5, [True]),
            "ended": ("failed", "timeout", 0, []),
        }
        assert (after.status, after.outcome, after.credits_charged, delivered) == ends[outcome]
        ended_count += outcome == "done"
    assert await credits_of(owner, rich) == (100 - 5 * ended_count, 0)
    return ended_count


async def test_run_closed_as_stuck_while_it_ends_is_both_paid_and_delivered_or_neither(
    runs, owner, rich, executor
):
    await the_sweep_against_the_end(runs, owner, rich, executor, races=20)

    assert not await findings(owner, rich)


@pytest.mark.battery
async def test_thousand_runs_are_closed_as_stuck_while_they_end(runs, owner, make_rich, executor):
    ends = [
        await the_sweep_against_the_end(runs, owner, await make_rich(), executor, races=20) for _ in range(50)
    ]

    assert 0 < sum(ends) < 1_000, "both have to win at times, or it was no race"
    assert not await owner.fetch("select * from ledger.audit()")


async def test_a_run_that_waits_for_its_children_is_not_stuck(runs, owner, rich, executor):
    stuck = await begun(runs, executor, new_run(rich))
    waiting = await begun(runs, executor, new_run(rich, credits_held=0, uses_concurrency_slot=False))
    await owner.execute("alter table runs disable trigger mark_change")
    await owner.execute(
        "update runs set created_at = now() - interval '1 hour', admitted_at = now() - interval '1 hour',"
        " updated_at = now() - interval '20 minutes' where id = any ($1)",
        [stuck.id, waiting.id],
    )
    await owner.execute("alter table runs enable trigger mark_change")

    await runs.fail_stalled()

    ended = await runs.find(stuck.account_id, stuck.id)
    assert (ended.status, ended.outcome) == ("failed", "timeout")
    assert (await runs.find(waiting.account_id, waiting.id)).status == "processing"


@pytest.mark.parametrize(
    "change",
    [
        "set status = 'completed'",
        "set credits_charged = 5",
        "set credits_charged = 6, status = 'completed', outcome = 'x', ended_at = now()",
        "set error = 'x'",
        "set progress = 101",
        "set hold_reference = null",
    ],
)
async def test_table_constraints_reject_invalid_changes(runs, owner, rich, executor, change):
    run = await begun(runs, executor, new_run(rich))

    with pytest.raises(asyncpg.CheckViolationError):
        await owner.execute(f"update runs {change} where id = $1", run.id)
