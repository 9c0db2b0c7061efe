"""Recovery of runs after a worker was killed, suspended or stopped; each run is charged once."""

import asyncio
import os
import signal
import time

import pytest

from tests.support import until
from tests.system.engine.conftest import Workers, code_of

DRAINING = "select count(*) from traffic.workers where is_draining and stopped_at is null"
PLACES = [
    "begin",
    *(f"{where}:{number}" for number in (1, 2, 3) for where in ("before", "inside", "after")),
    "end",
]


async def the_crash(workers, book):
    """Kill a worker that has a run at every place while another worker is alive. Returns the ended runs and
    the seconds until the last one ended."""
    try:
        doomed = await workers.start(halts=True)
        runs = {place: await book.start(halt_at=place) for place in PLACES}
        for place, run_id in runs.items():
            await book.noted([run_id], f"halted {place}")
        await workers.start()
        doomed.kill()
        killed_at = time.monotonic()
        await book.ended(runs.values())
        return runs, time.monotonic() - killed_at
    finally:
        await workers.end_all()


@pytest.fixture(scope="module")
async def after_the_crash(engine_addresses, make_book, tmp_path_factory):
    workers, book = Workers(engine_addresses, tmp_path_factory.mktemp("workers")), await make_book()
    runs, recovery_s = await the_crash(workers, book)
    print(f"{len(runs)} runs ended elsewhere {recovery_s:.2f} s after the kill")  # noqa: T201
    return book, runs


@pytest.mark.battery
@pytest.mark.parametrize("repetition", range(20))
async def test_runs_complete_after_every_crash(engine_addresses, book, tmp_path, repetition):
    runs, recovery_s = await the_crash(Workers(engine_addresses, tmp_path), book)

    print(f"{repetition}: {recovery_s:.2f} s")  # noqa: T201
    assert {(await book.find(run_id)).status for run_id in runs.values()} == {"completed"}
    assert all([(await book.notes(run_id)).count("delivered") == 1 for run_id in runs.values()])
    assert await book.all_charged_once()


@pytest.mark.parametrize("place", PLACES)
async def test_run_of_a_killed_worker_completes_on_another(after_the_crash, place):
    book, runs = after_the_crash

    run = await book.find(runs[place])

    assert (run.status, run.outcome, run.progress, run.credits_charged) == ("completed", "completed", 100, 5)
    assert (await book.notes(run.id)).count("delivered") == 1


@pytest.mark.parametrize("place", PLACES)
async def test_stored_steps_are_not_executed_again(after_the_crash, place):
    book, runs = after_the_crash
    notes = await book.notes(runs[place])

    for number in (1, 2, 3):
        again = place == f"inside:{number}"
        assert notes.count(f"step_{number}") == (2 if again else 1)


async def test_ledger_is_consistent_after_the_crash(after_the_crash):
    book, _ = after_the_crash

    assert await book.all_charged_once()


async def the_return(workers, book):
    """Suspend a worker that has active runs, let another worker finish them, then resume the first."""
    zombie = await workers.start(halts=True)
    runs = [await book.start(halt_at=place) for place in ("inside:2", "after:2", "after:3")]
    for run_id, place in zip(runs, ("inside:2", "after:2", "after:3"), strict=True):
        await book.noted([run_id], f"halted {place}")
    await workers.start()
    os.kill(zombie.pid, signal.SIGSTOP)
    await book.ended(runs)
    before = [await book.find(run_id) for run_id in runs]

    workers.go_on.touch()  # its halted steps end as soon as it resumes
    os.kill(zombie.pid, signal.SIGCONT)
    assert await code_of(zombie) == 1
    return runs, before


async def test_resumed_worker_is_fenced_and_stops_without_writing(workers, book):
    runs, before = await the_return(workers, book)

    assert [await book.find(run_id) for run_id in runs] == before
    assert all([(await book.notes(run_id)).count("delivered") == 1 for run_id in runs])
    assert await book.all_charged_once()


@pytest.mark.battery
@pytest.mark.parametrize("repetition", range(50))
async def test_resumed_worker_never_writes(engine_addresses, book, tmp_path, repetition):
    workers = Workers(engine_addresses, tmp_path / str(repetition))
    workers.go_on.parent.mkdir()
    try:
        runs, before = await the_return(workers, book)
    finally:
        await workers.end_all()

    assert [await book.find(run_id) for run_id in runs] == before
    assert all([(await book.notes(run_id)).count("delivered") == 1 for run_id in runs])
    assert await book.all_charged_once()


async def test_stopping_worker_finishes_short_runs_and_reenqueues_the_rest(workers, book):
    leaver = await workers.start(halts=True, OSLIRA_DRAIN_SECONDS="5")  # it drains runs for three of them
    short, long = await book.start(seconds=0.5), await book.start(halt_at="inside:3")
    await book.noted([long], "halted inside:3")
    await book.noted([short], "step_2")
    leaver.terminate()
    await until(lambda: book.owner.fetchval(DRAINING))
    late = await book.start()

    assert await code_of(leaver) == 0
    assert (await book.find(short)).status == "completed"
    assert [(await book.find(run_id)).status for run_id in (long, late)] == ["processing", "queued"]
    # The worker re-enqueues them itself; no other worker has to detect missing heartbeats.
    assert [await book.in_engine(run_id) for run_id in (long, late)] == ["ENQUEUED"] * 2

    await workers.start()
    await book.ended([long, late])
    assert [(await book.find(run_id)).status for run_id in (long, late)] == ["completed"] * 2
    assert await book.all_charged_once()


async def test_cancellation_interrupts_any_step_without_charge(workers, book):
    await workers.start(halts=True)
    runs = {number: await book.start(halt_at=f"inside:{number}") for number in (1, 2, 3)}
    for number, run_id in runs.items():
        await book.noted([run_id], f"halted inside:{number}")

    answers = await asyncio.gather(*(book.cancel(run_id) for run_id in runs.values()))
    await book.ended(runs.values())

    assert answers == ["requested"] * 3
    for number, run_id in runs.items():
        run = await book.find(run_id)
        assert (run.status, run.current_step, run.credits_charged) == ("cancelled", f"step_{number}", 0)
        assert (await book.notes(run_id))[-1] == f"interrupted step_{number}"
    assert await book.all_charged_once()
