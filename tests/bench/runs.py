"""Runs in the database: started without HTTP, awaited, and deleted."""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID, uuid4

import asyncpg
from place import BenchFailed
from processes import Program
from rounds import TASKS

from features.runs.domain.run import NewRun
from infrastructure.database.runs.runs import PostgresRuns
from shared.ids import AccountId, RunId

KIND = "bench_steps"  # see step_worker
QUEUE = "runs"
LOOK_INTERVAL_S = 0.2
STANDSTILL_S_MAX = 60.0
# The next measurement would execute leftover runs. The credits that they hold stay held.
FORGET = "truncate public.runs, dbos.workflow_status cascade"
COUNT = f"""
select count(*) filter (where status = 'completed') as completed,
    max(outcome || coalesce(': ' || error, '')) filter (where status in ('failed', 'cancelled')) as failure
from public.runs where kind = '{KIND}'
"""
MOMENTS = f"""
select extract(epoch from started_at)::float8 as started_s, extract(epoch from ended_at)::float8 as ended_s
from public.runs where kind = '{KIND}' order by ended_at
"""


class Moments(NamedTuple):
    started_s: float
    ended_s: float


async def start_runs(
    runs: PostgresRuns, accounts: Sequence[UUID], count: int, *, steps: int, credits_held: int = 1
) -> list[float]:
    """Starts sixteen at a time, with the accounts in turn. Returns the seconds until each was started."""
    numbers = iter(range(count))
    moments: list[float] = []
    outcomes: set[str] = set()
    began_s = time.perf_counter()

    async def keep_starting() -> None:
        for number in numbers:
            new = NewRun(
                account_id=AccountId(accounts[number % len(accounts)]),
                id=RunId(uuid4()),
                kind=KIND,
                subject={"steps": steps},
                credits_held=credits_held,
                transaction_type="analysis",
                queue=QUEUE,
            )
            outcomes.add((await runs.start(new)).outcome)
            moments.append(time.perf_counter() - began_s)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(TASKS):
            tasks.create_task(keep_starting())
    if outcomes != {"started"}:
        raise BenchFailed(f"Not every run was started: {sorted(outcomes)}")
    return moments


async def until_completed(owner: asyncpg.Connection, worker: Program, count: int) -> None:
    """Raises BenchFailed when a run ends in another way, or when there is no progress."""
    completed = 0
    moved_at_s = time.perf_counter()
    while completed < count:
        worker.check()
        found = await owner.fetchrow(COUNT)
        if found["failure"]:
            raise BenchFailed(f"A run of {worker.name} did not complete: {found['failure']}")
        if found["completed"] > completed:
            completed, moved_at_s = found["completed"], time.perf_counter()
        elif time.perf_counter() > moved_at_s + STANDSTILL_S_MAX:
            raise worker.failure(f"stands still after {completed} of {count} runs")
        await asyncio.sleep(LOOK_INTERVAL_S)


async def moments_of_runs(owner: asyncpg.Connection) -> list[Moments]:
    """Returns the runs' times in the order of their ends."""
    return [Moments(*row) for row in await owner.fetch(MOMENTS)]


async def forget_runs(owner: asyncpg.Connection) -> None:
    await owner.execute(FORGET)
