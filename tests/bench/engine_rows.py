"""Cost of durable steps, compared with a conventional job queue."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import asyncpg
from customers import make_account
from meters import postgres_processor_s, processor_s
from place import Place
from processes import BENCH, Program, peers_python, program, step_worker
from rounds import Pair, Round
from runs import LOOK_INTERVAL_S, STANDSTILL_S_MAX, forget_runs, moments_of_runs, start_runs, until_completed
from tenants import open_database
from tools import run

from infrastructure.database.runs.runs import PostgresRuns

STEPS = 5
ACCOUNTS_COUNT = 20
JOBS_A_SECOND = 60  # per second of a round
JOBS_FIRST = 40  # warm-up before the measurement: opens connections, prepares statements
PEERS_DATABASE = "procrastinate"
COUNT = """
select count(*) filter (where status = 'succeeded') as completed,
    count(*) filter (where status not in ('todo', 'doing', 'succeeded')) as failed
from procrastinate_jobs
"""
# Of the jobs after the warm-up.
SPAN = """
select extract(epoch from max(e.at) filter (where e.type = 'succeeded')
    - min(e.at) filter (where e.type = 'started'))::float8
from procrastinate_events as e where e.job_id > $1
"""


class Cost(NamedTuple):
    cpu_ms: float  # per job, of the worker and of PostgreSQL
    jobs_per_s: float


@asynccontextmanager
async def cpu_and_procrastinates(place: Place) -> AsyncGenerator[Round]:
    async with _costs(place) as measure_costs:

        async def measure_round(seconds: int) -> Pair:
            ours, theirs = await measure_costs(seconds)
            return Pair(subject=ours.cpu_ms, floor=theirs.cpu_ms)

        yield measure_round


@asynccontextmanager
async def rate_and_procrastinates(place: Place) -> AsyncGenerator[Round]:
    async with _costs(place) as measure_costs:

        async def measure_round(seconds: int) -> Pair:
            ours, theirs = await measure_costs(seconds)
            return Pair(subject=ours.jobs_per_s, floor=theirs.jobs_per_s)

        yield measure_round


@asynccontextmanager
async def _costs(place: Place) -> AsyncGenerator[Callable[[int], Awaitable[tuple[Cost, Cost]]]]:
    """Runs only one of the two at a time, because they share PostgreSQL's processes."""
    accounts = [await make_account(place.owner) for _ in range(ACCOUNTS_COUNT)]
    async with open_database(place) as database, _peer(place) as theirs:
        ours = _Ours(place, PostgresRuns(database.admin("benchmark")), accounts)

        async def measure_costs(seconds: int) -> tuple[Cost, Cost]:
            jobs_count = JOBS_A_SECOND * seconds
            return await ours.cost(jobs_count), await theirs.cost(jobs_count)

        yield measure_costs


@dataclass(frozen=True, slots=True)
class _Ours:
    place: Place
    runs: PostgresRuns
    accounts: list[UUID]

    async def cost(self, jobs_count: int) -> Cost:
        owner = self.place.owner
        try:
            async with step_worker(self.place) as worker:
                await self._start(JOBS_FIRST)
                await until_completed(owner, worker, JOBS_FIRST)
                before_s = await _cpu_s(owner, worker)
                await self._start(jobs_count)
                await until_completed(owner, worker, JOBS_FIRST + jobs_count)
                spent_s = await _cpu_s(owner, worker) - before_s
            moments = (await moments_of_runs(owner))[JOBS_FIRST:]
        finally:
            await forget_runs(owner)
        span_s = moments[-1].ended_s - min(run.started_s for run in moments)
        return Cost(spent_s / jobs_count * 1_000, jobs_count / span_s)

    async def _start(self, count: int) -> None:
        await start_runs(self.runs, self.accounts, count, steps=STEPS, credits_held=0)


@dataclass(frozen=True, slots=True)
class _Theirs:
    place: Place
    environ: dict[str, str]
    connection: asyncpg.Connection

    async def cost(self, jobs_count: int) -> Cost:
        command = (*_peers_command(), "work")
        done_before = await self.connection.fetchval("select count(*) from procrastinate_jobs")
        first = done_before + JOBS_FIRST * STEPS
        async with program("procrastinate", command, self.environ, self.place.folder) as worker:
            await self._defer(JOBS_FIRST)
            await self._until_completed(worker, first)
            before_s = await _cpu_s(self.connection, worker)
            last_before = await self.connection.fetchval("select max(id) from procrastinate_jobs")
            await self._defer(jobs_count)
            await self._until_completed(worker, first + jobs_count * STEPS)
            spent_s = await _cpu_s(self.connection, worker) - before_s
        span_s = await self.connection.fetchval(SPAN, last_before)
        return Cost(spent_s / jobs_count * 1_000, jobs_count / span_s)

    async def _defer(self, count: int) -> None:
        await run(*_peers_command(), "defer", count, environ=self.environ)

    async def _until_completed(self, worker: Program, count: int) -> None:
        until_s = time.perf_counter() + STANDSTILL_S_MAX
        while True:
            worker.check()
            found = await self.connection.fetchrow(COUNT)
            if found["failed"]:
                raise worker.failure(f"failed in {found['failed']} jobs")
            if found["completed"] >= count:
                return
            if time.perf_counter() > until_s:
                raise worker.failure(f"is slow: {found['completed']} of {count} jobs")
            await asyncio.sleep(LOOK_INTERVAL_S)


@asynccontextmanager
async def _peer(place: Place) -> AsyncGenerator[_Theirs]:
    """The peer in its own database on the same server."""
    await place.owner.execute(f"create database {PEERS_DATABASE}")
    url = urlunsplit(urlsplit(place.addresses.owner)._replace(path=f"/{PEERS_DATABASE}"))
    environ = {**place.environ, "DATABASE_URL": url}
    connection = None
    try:
        await run(*_peers_command(), "prepare", environ=environ)
        connection = await asyncpg.connect(url)
        yield _Theirs(place, environ, connection)
    finally:
        if connection is not None:
            await connection.close()
        await place.owner.execute(f"drop database {PEERS_DATABASE} with (force)")


def _peers_command() -> tuple[object, ...]:
    return peers_python(), BENCH / "peer" / "procrastinate_jobs.py"


async def _cpu_s(connection: asyncpg.Connection, worker: Program) -> float:
    backend_id = await connection.fetchval("select pg_backend_pid()")
    return processor_s(worker.process.pid) + postgres_processor_s(backend_id)
