"""Concurrency limits of queues over several workers, and fairness between accounts."""

from pathlib import Path

import pytest

from tests.support import until

AT_WORK = "select count(*) from dbos.workflow_status where status = 'PENDING' and queue_name = $1"


@pytest.fixture
def at_work(book):
    async def at_work(queue):
        return await book.owner.fetchval(AT_WORK, queue)

    return at_work


async def test_two_workers_share_the_global_concurrency_limit(workers, book, at_work):
    await workers.start(halts=True)
    await workers.start(halts=True)
    runs = [await book.start(queue="narrow", halt_at="inside:1") for _ in range(6)]
    most = 0

    async def two_wait():
        nonlocal most
        most = max(most, await at_work("narrow"))
        notes = await book.owner.fetchval(
            "select count(*) from oslira.notes where place = 'halted inside:1' and run_id = any ($1)", runs
        )
        return notes >= 2

    await until(two_wait)
    workers.go_on.touch()
    while not all([(await book.find(run_id)).is_ended for run_id in runs]):
        most = max(most, await at_work("narrow"))

    assert most == 2
    assert await book.all_charged_once()


async def test_account_with_many_runs_does_not_delay_another_account(workers, make_book):
    crowd, single = await make_book(runs_at_once=2), await make_book()
    runs = [await crowd.start(queue="fair", halt_at="inside:1") for _ in range(8)]
    await workers.start(halts=True)
    await until(lambda: noted(crowd, runs, 2))

    mine = await single.start(queue="fair")
    await single.ended([mine])

    assert (await single.find(mine)).status == "completed"
    assert await noted(crowd, runs, 2)
    workers.go_on.touch()
    await crowd.ended(runs)
    assert await crowd.all_charged_once()


async def noted(book, runs, count):
    places = [place for run_id in runs for place in await book.notes(run_id)]
    return places.count("halted inside:1") == count


async def test_run_cancelled_while_queued_never_starts(workers, book):
    run_id = await book.start()
    assert await book.cancel(run_id) == "cancelled"
    await workers.start()

    await book.ended([await book.start()])

    assert await book.notes(run_id) == []
    assert (await book.find(run_id)).outcome == "cancelled_queued"
    assert await book.all_charged_once()


@pytest.mark.battery
async def test_worker_memory_does_not_grow_with_the_number_of_runs(workers, make_book):
    book = await make_book()
    await book.owner.execute(
        "select ledger.grant_credits($1, 100000, 'more', 'purchase')", book.tenant.account_id
    )
    worker = await workers.start()
    resident = []
    for _ in range(6):
        runs = [await book.start() for _ in range(300)]
        await book.ended(runs)
        resident.append(memory_pages(worker))

    print(f"pages of memory after each 300 runs: {resident}")  # noqa: T201
    assert resident[-1] <= 1.1 * resident[1]


def memory_pages(process):
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
