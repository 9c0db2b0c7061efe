"""Cost of the ten-thousandth run compared with the first."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
from customers import PLAN, SMALL_PLAN, make_account
from meters import resident_mb
from place import Place
from processes import step_worker
from rounds import Pair, Round
from runs import forget_runs, moments_of_runs, start_runs, until_completed
from tenants import open_database, settle

from infrastructure.database.runs.runs import PostgresRuns

RUNS_COUNT = 10_000
PART = 1_000
MANY = 50


class CompletedRuns(msgspec.Struct, frozen=True):
    """Result of ten thousand runs, measured once."""

    first_s: float  # between the end of the first and of the thousandth run
    last_s: float
    first_mb: float  # the worker's memory after a thousand runs
    last_mb: float


@asynccontextmanager
async def last_and_first_started(place: Place, *, accounts_count: int) -> AsyncGenerator[Round]:
    """Starts by accounts with one concurrent run: the others wait. Each round uses new accounts and an empty
    queue.
    """
    async with open_database(place) as database:
        runs = PostgresRuns(database.admin("benchmark"))

        async def measure_round(_: int) -> Pair:
            accounts = [await make_account(place.owner, plan=SMALL_PLAN) for _ in range(accounts_count)]
            await forget_runs(place.owner)
            await settle(place.owner)
            moments = await start_runs(runs, accounts, RUNS_COUNT, steps=1)
            return Pair(
                subject=(moments[-1] - moments[-PART]) * 1_000,
                floor=(moments[PART - 1] - moments[0]) * 1_000,
            )

        try:
            yield measure_round
        finally:
            await forget_runs(place.owner)


@asynccontextmanager
async def last_and_first_completed(place: Place, *, accounts_count: int) -> AsyncGenerator[Round]:
    """For accounts with twenty concurrent runs, by one worker. Ten thousand runs take minutes, so they are
    executed once, and every round returns the same pair.
    """
    completed = await _completed(place, accounts_count=accounts_count)

    async def measure_round(_: int) -> Pair:
        return Pair(subject=completed.last_s * 1_000, floor=completed.first_s * 1_000)

    yield measure_round


@asynccontextmanager
async def memory_at_the_end_and_early(place: Place) -> AsyncGenerator[Round]:
    """Memory of the worker that executed the runs of fifty accounts; every round returns the same pair."""
    completed = await _completed(place, accounts_count=MANY)

    async def measure_round(_: int) -> Pair:
        return Pair(subject=completed.last_mb, floor=completed.first_mb)

    yield measure_round


async def _completed(place: Place, *, accounts_count: int) -> CompletedRuns:
    """Executes the runs on the first call; two rows share the result."""
    kept = place.folder / f"carried-out-{accounts_count}.json"
    if kept.exists():
        return msgspec.json.decode(kept.read_bytes(), type=CompletedRuns)
    accounts = [await make_account(place.owner, plan=PLAN) for _ in range(accounts_count)]
    async with open_database(place) as database:
        await start_runs(PostgresRuns(database.admin("benchmark")), accounts, RUNS_COUNT, steps=1)
    try:
        await settle(place.owner)
        async with step_worker(place) as worker:
            await until_completed(place.owner, worker, PART)
            first_mb = resident_mb(worker.process.pid)
            await until_completed(place.owner, worker, RUNS_COUNT)
            last_mb = resident_mb(worker.process.pid)
        ends_s = [moments.ended_s for moments in await moments_of_runs(place.owner)]
    finally:
        await forget_runs(place.owner)
    completed = CompletedRuns(
        first_s=ends_s[PART - 1] - ends_s[0],
        last_s=ends_s[-1] - ends_s[-PART],
        first_mb=first_mb,
        last_mb=last_mb,
    )
    kept.write_bytes(msgspec.json.encode(completed))
    return completed
