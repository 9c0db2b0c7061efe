"""Rows of a bulk run: each is started once and ends with its own run."""

import uuid

import pytest

from features.analysis.domain.bulk import BulkItem, Counts, Rejection
from features.runs.domain.run import NewRun, RunEnd
from infrastructure.database.analysis.bulk_items import PostgresBulkItems
from infrastructure.database.runs.runs import PostgresRuns
from infrastructure.database.runs.workers import PostgresWorkerRegistry
from shared.ids import RunId

NAMES = [(1, "ada"), (2, "bob"), (4, "cleo"), (5, "dora")]
REJECTED = Rejection(position=3, text="not a name", code="username_invalid", reason="It is no name.")


@pytest.fixture
def session(database):
    return database.admin("tests")


@pytest.fixture
def items(session):
    return PostgresBulkItems(session)


@pytest.fixture
def runs(session):
    return PostgresRuns(session)


@pytest.fixture
def start(runs, tenant):
    """A function: a run that costs nothing."""

    async def start(kind="light_analysis", **options):
        new = NewRun(
            account_id=tenant.account_id,
            id=RunId(uuid.uuid4()),
            kind=kind,
            subject={},
            credits_held=0,
            transaction_type="analysis",
            queue="no_worker",
            **options,
        )
        return (await runs.start(new)).run

    return start


@pytest.fixture
async def bulk(items, start):
    bulk = await start("bulk_analysis", uses_concurrency_slot=False)
    await items.add(bulk.account_id, bulk.id, NAMES, [REJECTED])
    return bulk


@pytest.fixture
def started(items, bulk, start):
    """A function: a run for the item at a position."""

    async def started(position):
        run = await start(parent_id=bulk.id, uses_concurrency_slot=False)
        await items.mark_started(bulk.account_id, bulk.id, position, run.id)
        return run

    return started


@pytest.fixture
async def end(session, runs):
    executor = str(uuid.uuid4())
    await PostgresWorkerRegistry(session).register(executor, host="here", queues=["tests"])

    async def end(run, status, outcome):
        _, begun = await runs.begin(run.account_id, run.id, executor=executor, attempts_max=3)
        assert await runs.finish(begun, RunEnd(status=status, outcome=outcome)) == "done"

    return end


async def statuses(owner, bulk):
    rows = await owner.fetch(
        "select status, outcome from bulk_items where account_id = $1 and run_id = $2 order by position",
        *(bulk.account_id, bulk.id),
    )
    return [tuple(row) for row in rows]


async def test_waiting_items_are_listed_in_order(items, bulk):
    waiting = await items.unstarted(bulk.account_id, bulk.id, 3)

    assert [(item.position, item.username) for item in waiting] == NAMES[:3]
    assert waiting[0] == BulkItem(
        account_id=bulk.account_id,
        run_id=bulk.id,
        position=1,
        username="ada",
        item_run_id=None,
        status="waiting",
        outcome=None,
    )


async def test_adding_items_is_idempotent(items, owner, bulk):
    await items.add(bulk.account_id, bulk.id, NAMES, [REJECTED])

    assert (await items.settle(bulk.account_id, bulk.id)).total == 4
    assert await owner.fetch(
        "select position, text, code, reason from bulk_rejections where run_id = $1", bulk.id
    ) == [(3, "not a name", "username_invalid", "It is no name.")]


async def test_an_item_is_started_once(items, bulk, started):
    first = await started(1)
    await started(1)

    assert [item.position for item in await items.unstarted(bulk.account_id, bulk.id, 9)] == [2, 4, 5]
    assert (await items.settle(bulk.account_id, bulk.id)).active == 1
    assert first.parent_id == bulk.id


async def test_items_end_as_their_runs_do(items, owner, bulk, started, end):
    ada, bob, _ = [await started(position) for position in (1, 2, 4)]
    await end(ada, "completed", "completed")
    await end(bob, "failed", "private")

    counts = await items.settle(bulk.account_id, bulk.id)

    assert counts == Counts(total=4, ended=2, completed=1, failed=1, cancelled=0, skipped=0, active=1)
    assert counts == await items.settle(bulk.account_id, bulk.id)
    assert await statuses(owner, bulk) == [
        ("completed", "completed"),
        ("failed", "private"),
        ("started", None),
        ("waiting", None),
    ]


async def test_item_of_a_removed_run_has_failed(items, owner, bulk, start):
    run = await start()
    await items.mark_started(bulk.account_id, bulk.id, 1, run.id)
    await owner.execute("delete from runs where id = $1", run.id)

    assert (await items.settle(bulk.account_id, bulk.id)).failed == 1
    assert (await statuses(owner, bulk))[0] == ("failed", "internal_failure")


async def test_items_that_were_not_started_can_be_abandoned(items, owner, bulk, started):
    await started(1)

    assert await items.end_unstarted(bulk.account_id, bulk.id, "cancelled", "cancelled_queued") == 3
    assert await items.end_unstarted(bulk.account_id, bulk.id, "cancelled", "cancelled_queued") == 0
    assert await items.unstarted(bulk.account_id, bulk.id, 9) == []
    assert await statuses(owner, bulk) == [("started", None)] + [("cancelled", "cancelled_queued")] * 3


async def test_rows_are_deleted_with_their_run(owner, bulk):
    await owner.execute("delete from runs where id = $1", bulk.id)

    assert await statuses(owner, bulk) == []
    assert not await owner.fetch("select from bulk_rejections where run_id = $1", bulk.id)
