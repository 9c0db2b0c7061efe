"""Fair admission of runs: a long backlog of one account hardly delays the others."""

import asyncio
import uuid

import pytest

from features.runs.domain.run import RunEnd
from tests.conftest import make_tenant
from tests.integration.database.runs.run_rows import credits_of, findings, in_queue, new_run

DONE = RunEnd(status="completed", outcome="completed", credits_charged=1)
NEXT = """
update dbos.workflow_status as w set status = 'PENDING' from (
    select workflow_uuid from dbos.workflow_status
    where queue_name = $1 and status = 'ENQUEUED' order by priority, created_at limit 1
    for update skip locked
) as next where w.workflow_uuid = next.workflow_uuid returning w.workflow_uuid
"""
AT_WORK = """
select count(*) from runs
where account_id = $1 and uses_concurrency_slot and admitted_at is not null
    and status in ('queued', 'processing', 'paused')
"""
WAITING = "select count(*) from runs where account_id = $1 and status = 'queued' and admitted_at is null"
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"


class Desk:
    """A worker with its own queue, which takes one run at a time on request."""

    def __init__(self, runs, session, owner, executor):
        self.queue = f"queue-{uuid.uuid4().hex[:8]}"
        self.runs, self.session, self.owner, self.executor = runs, session, owner, executor
        self.at_work = []

    async def order(self, tenant, count=1, *, credits_held=1, **changes):
        """Starts runs and returns their ids."""
        changes |= {"queue": self.queue, "credits_held": credits_held}
        new = [new_run(tenant, **changes) for _ in range(count)]
        for run in new:
            assert (await self.runs.start(run)).outcome == "started"
        return [run.id for run in new]

    async def take(self):
        """Begins the next run, as the engine would; returns None when there is none."""
        rows = await self.session.fetch(NEXT, self.queue)
        if not rows:
            return None
        run_id = uuid.UUID(rows[0]["workflow_uuid"])
        ((account_id,),) = await self.session.fetch("select account_id from runs where id = $1", run_id)
        outcome, run = await self.runs.begin(account_id, run_id, executor=self.executor, attempts_max=3)
        if outcome == "begun":
            self.at_work.append(run)
        return run

    async def end(self):
        """Ends the oldest run."""
        assert await self.runs.finish(self.at_work.pop(0), DONE) == "done"

    async def pass_s(self, seconds):
        """Backdates the queue, so that all queued runs have waited this much longer."""
        await self.owner.execute(
            "update dbos.workflow_status set priority = priority - $2 where queue_name = $1",
            self.queue,
            seconds,
        )
        await self.owner.execute(
            "update runs set queue_priority = queue_priority - $2"
            " where queue = $1 and queue_priority is not null",
            self.queue,
            seconds,
        )


@pytest.fixture
def desk(runs, session, owner, executor):
    return Desk(runs, session, owner, executor)


@pytest.fixture
def account_on(owner):
    """A function: an account on a plan, with credits."""

    async def make(plan):
        tenant = await make_tenant(owner)
        await owner.execute("select ledger.grant_credits($1, 5000, 'g', 'admin_grant')", tenant.account_id)
        await owner.execute("update accounts set plan = $1 where id = $2", plan, tenant.account_id)
        return tenant

    return make


async def places_until(desk, run_id):
    """Returns how many slots had to become free until the run began."""
    for count in range(1, 100):
        await desk.end()
        if (await desk.take()).id == run_id:
            return count
    raise AssertionError(run_id)


async def the_flood(desk, account_on, *, plan, runs_count, waited_s):
    crowd, single = await account_on(plan), await account_on("free")
    await desk.order(crowd, runs_count)
    for _ in range(4):
        await desk.take()
    for _ in range(10):  # the backlog continues for a while
        await desk.end()
        await desk.take()
    await desk.pass_s(waited_s)
    (mine,) = await desk.order(single)
    return await places_until(desk, mine)


@pytest.mark.parametrize("waited_s", [0, 15, 300])
@pytest.mark.parametrize("plan", ["agency", "enterprise"])
async def test_single_run_waits_for_one_or_two_runs_of_a_backlog(desk, account_on, plan, waited_s):
    assert await the_flood(desk, account_on, plan=plan, runs_count=40, waited_s=waited_s) <= 2


@pytest.mark.battery
@pytest.mark.parametrize("waited_s", [0, 15, 300])
async def test_single_run_waits_for_one_or_two_runs_of_a_thousand(desk, account_on, waited_s):
    assert await the_flood(desk, account_on, plan="agency", runs_count=1_000, waited_s=waited_s) <= 2


async def test_accounts_with_one_run_each_are_admitted_in_order(desk, account_on):
    orders = [(await desk.order(await account_on("free")))[0] for _ in range(5)]

    assert [(await desk.take()).id for _ in orders] == orders


async def test_bigger_plan_gets_the_bigger_share_of_two_backlogs_but_not_all(desk, account_on):
    pro, enterprise = await account_on("pro"), await account_on("enterprise")
    for _ in range(15):
        await desk.order(pro)
        await desk.order(enterprise)

    taken = [await desk.take()]
    while len(taken) < 12:
        taken.append(await desk.take())
        await desk.end()

    shares = [run.account_id for run in taken]
    assert 2 <= shares.count(pro.account_id) < shares.count(enterprise.account_id)


async def test_new_accounts_never_starve_a_waiting_run(desk, account_on):
    patient = await account_on("agency")
    *_, last = await desk.order(patient, 10)
    await desk.pass_s(3_700)
    for _ in range(12):
        await desk.order(await account_on("free"))

    taken = [(await desk.take()).id for _ in range(10)]

    assert last in taken


async def test_account_never_exceeds_its_plans_concurrency(desk, account_on, owner):
    tenant = await account_on("growth")
    await desk.order(tenant, 5)

    assert await owner.fetchval(AT_WORK, tenant.account_id) == 2
    assert await owner.fetchval(WAITING, tenant.account_id) == 3
    for waiting in (2, 1, 0, 0):
        await desk.take()
        await desk.end()
        assert await owner.fetchval(WAITING, tenant.account_id) == waiting


async def test_parent_without_a_turn_leaves_the_slot_to_its_children(desk, account_on, owner):
    tenant = await account_on("free")
    (parent,) = await desk.order(tenant, uses_concurrency_slot=False)
    first, second = await desk.order(tenant, 2, parent_id=parent)

    assert [await in_queue(owner, run_id) for run_id in (parent, first, second)] == [
        "ENQUEUED",
        "ENQUEUED",
        None,
    ]


async def test_runs_without_a_turn_do_not_delay_other_accounts(desk, account_on):
    crowd, single = await account_on("free"), await account_on("free")
    await desk.order(crowd, 10, uses_concurrency_slot=False)
    (mine,) = await desk.order(single)

    assert mine in [(await desk.take()).id for _ in range(2)]


async def test_upgrade_admits_waiting_runs_at_once(desk, account_on, owner):
    tenant = await account_on("free")
    await desk.order(tenant, 4)

    await owner.execute("update accounts set plan = 'growth' where id = $1", tenant.account_id)

    assert await owner.fetchval(AT_WORK, tenant.account_id) == 2


async def test_raised_plan_limit_applies_within_a_minute(desk, account_on, owner, runs):
    name = "plan_" + "".join(chr(97 + byte % 26) for byte in uuid.uuid4().bytes)
    await owner.execute("insert into plans (name, runs_at_once) values ($1, 1)", name)
    tenant = await account_on(name)
    await desk.order(tenant, 4)
    await owner.execute("update plans set runs_at_once = 3 where name = $1", name)

    await runs.fail_stalled()

    assert await owner.fetchval(AT_WORK, tenant.account_id) == 3


async def test_downgrade_ends_no_run_and_admits_no_more(desk, account_on, owner):
    tenant = await account_on("growth")
    await desk.order(tenant, 4)
    await owner.execute("update accounts set plan = 'free' where id = $1", tenant.account_id)
    await desk.take()
    await desk.end()

    assert await owner.fetchval(AT_WORK, tenant.account_id) == 1


async def test_waiting_run_that_is_cancelled_is_never_admitted(desk, account_on, owner, runs):
    tenant = await account_on("free")
    _, second, third = await desk.order(tenant, 3)

    outcome, run = await runs.request_cancel(tenant.account_id, second)

    assert (outcome, run.status, run.outcome) == ("cancelled", "cancelled", "cancelled_queued")
    await desk.take()
    await desk.end()
    assert [await in_queue(owner, run_id) for run_id in (second, third)] == [None, "ENQUEUED"]
    assert not await findings(owner, tenant)


async def test_children_are_cancelled_with_their_parent_and_other_runs_are_admitted(
    desk, account_on, owner, runs
):
    tenant = await account_on("growth")
    (parent,) = await desk.order(tenant, uses_concurrency_slot=False)
    children = await desk.order(tenant, 6, parent_id=parent)
    (stranger,) = await desk.order(tenant)
    await desk.take()
    at_work = await desk.take()

    outcome, _ = await runs.request_cancel(tenant.account_id, parent)
    again, _ = await runs.request_cancel(tenant.account_id, parent)

    assert (outcome, again) == ("requested", "repeated")
    after = [await runs.find(tenant.account_id, run_id) for run_id in children]
    assert {run.status for run in after if run.id != at_work.id} == {"cancelled"}
    assert [run.should_cancel for run in after] == [True] * 6
    # None of the waiting children was ever in the queue.
    assert [await in_queue(owner, run_id) for run_id in children].count(None) == 4
    assert await in_queue(owner, stranger) == "ENQUEUED"
    assert not await findings(owner, tenant)


async def test_runs_of_a_deleted_account_stop_and_waiting_ones_cost_nothing(desk, account_on, owner, runs):
    tenant = await account_on("growth")
    (parent,) = await desk.order(tenant, uses_concurrency_slot=False)
    children = await desk.order(tenant, 3, parent_id=parent)
    await desk.take()
    at_work = await desk.take()

    await owner.execute("update accounts set deleted_at = now() where id = $1", tenant.account_id)

    after = [await runs.find(tenant.account_id, run_id) for run_id in (parent, *children)]
    assert [run.should_cancel for run in after] == [True] * 4
    assert [run.status for run in after if run.id not in {parent, at_work.id}] == ["cancelled"] * 2
    assert await credits_of(owner, tenant) == (4998, 2)


async def test_removed_account_leaves_nothing_in_the_engine(desk, account_on, owner):
    tenant = await account_on("free")
    first, second = await desk.order(tenant, 2)
    await owner.execute(
        "insert into dbos.operation_outputs (workflow_uuid, function_id, function_name, output)"
        " values ($1, 1, 'step', 'a tenant''s')",
        str(first),
    )

    await owner.execute("delete from accounts where id = $1", tenant.account_id)

    assert await in_queue(owner, first) is None
    for table in ("workflow_input", "operation_outputs"):
        assert not await owner.fetchval(
            f"select count(*) from dbos.{table} where workflow_uuid = any ($1)", [str(first), str(second)]
        )


async def the_rivals(desk, tenant, *, rounds):
    """Sixteen tasks start, end, cancel and close runs; returns the highest observed number of active runs."""
    runs, most = desk.runs, 0

    async def look():
        nonlocal most
        ((count,),) = await desk.session.fetch(AT_WORK, tenant.account_id)
        most = max(most, count)

    async def rival(number):
        for _ in range(rounds):
            (run_id,) = await desk.order(tenant, credits_held=number % 2)
            await look()
            if number % 4 == 0:
                await runs.request_cancel(tenant.account_id, run_id)
            elif (run := await desk.take()) and not run.is_ended:
                await runs.progress(run, 50, step="half")
                await look()
                await runs.finish(run, paid(run))
            if number % 8 == 1:
                await runs.fail_stalled()

    await asyncio.gather(*(rival(number) for number in range(16)))
    while run := await desk.take():
        await runs.finish(run, paid(run))
    return most


def paid(run):
    return RunEnd(status="completed", outcome="completed", credits_charged=run.credits_held)


@pytest.fixture
def rivals(desk, account_on, owner):
    """A function: runs this many concurrent rounds and returns whether no deadlock occurred."""

    async def rivals(rounds):
        tenant = await account_on("pro")
        before = await owner.fetchval(DEADLOCKS)
        most = await the_rivals(desk, tenant, rounds=rounds)
        ended = await owner.fetchval(
            "select count(*) from runs where account_id = $1 and ended_at is not null", tenant.account_id
        )
        assert (most, ended) == (5, 16 * rounds)
        assert not await findings(owner, tenant)
        await owner.execute("select pg_stat_clear_snapshot()")
        return await owner.fetchval(DEADLOCKS) == before

    return rivals


async def test_concurrent_tasks_never_exceed_the_plans_concurrency_and_all_runs_end(rivals):
    assert await rivals(3)


@pytest.mark.battery
async def test_concurrent_tasks_never_exceed_the_plans_concurrency_over_many_rounds(rivals):
    assert await rivals(100)


async def the_tangle(desk, tenant, registry, *, rounds):
    """Parents and children are cancelled, ended and fenced concurrently."""
    runs = desk.runs
    for _ in range(rounds):
        executor = str(uuid.uuid4())
        await registry.register(executor, host="here", queues=[])
        (parent,) = await desk.order(tenant, uses_concurrency_slot=False)
        children = await desk.order(tenant, 8, parent_id=parent)
        begun = [
            (await runs.begin(tenant.account_id, run_id, executor=executor, attempts_max=3))[1]
            for run_id in (parent, *children)
            if await in_queue(desk.owner, run_id)
        ]
        await asyncio.gather(
            runs.request_cancel(tenant.account_id, parent),
            *(runs.request_cancel(tenant.account_id, run_id) for run_id in reversed(children)),
            *(runs.finish(run, DONE) for run in begun[1:]),
            *(registry.deregister(name) for name in (executor, executor)),
            runs.fail_stalled(),
        )
        for run_id in (parent, *children):
            _, run = await runs.begin(tenant.account_id, run_id, executor=desk.executor, attempts_max=9)
            if not run.is_ended:
                assert await runs.finish(run, RunEnd(status="cancelled", outcome="cancelled")) == "done"


@pytest.mark.parametrize("rounds", [4, pytest.param(200, marks=pytest.mark.battery)], ids=["a few", "many"])
async def test_concurrent_changes_of_parents_and_children_do_not_deadlock(
    desk, account_on, owner, registry, rounds
):
    tenant = await account_on("pro")
    before = await owner.fetchval(DEADLOCKS)

    await the_tangle(desk, tenant, registry, rounds=rounds)

    await owner.execute("select pg_stat_clear_snapshot()")
    assert await owner.fetchval(DEADLOCKS) == before
    assert (await credits_of(owner, tenant))[1] == 0
    assert not await findings(owner, tenant)
