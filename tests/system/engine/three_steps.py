"""Workflow with three steps, and a worker process for it that can halt at any place.

A run's subject may name a place: `before:2`, `inside:2`, `after:2`, `begin` or `end`. A process with halts
enabled writes a note there and waits until it is killed or stopped, or until the file `go_on` exists.
"""

import asyncio
import dataclasses
import logging
import os
import sys
from contextlib import asynccontextmanager

import uvloop

from core.engine.run_context import RunContext
from core.engine.supervisor import supervise_engine
from core.engine.workflow import Queue, RunResult, Workflow
from core.processes.server import serve
from core.processes.signals import termination
from core.processes.worker import WorkerFenced, run_engine
from core.wiring.bootstrap import read_runtime, start_logs
from core.wiring.engine import engine_config
from core.wiring.resources import open_resources
from core.wiring.slice import WorkerParts
from features.runs.domain.run import RunEnd
from infrastructure.database.runs.runs import PostgresRuns
from tests.support import until

KIND = "three_steps"
QUEUES = (
    Queue(name="hot", poll_interval_s=0.1, worker_concurrency=40),
    Queue(name="narrow", poll_interval_s=0.1, worker_concurrency=2, global_concurrency=2),
    Queue(name="fair", poll_interval_s=0.1, worker_concurrency=4),
)
NOTE = "insert into oslira.notes (run_id, place, pid) values ($1, $2, $3)"
NOTES = """
create table oslira.notes (
    run_id uuid, place text, pid integer, at timestamptz not null default clock_timestamp()
);
alter table oslira.notes enable row level security;
grant select, insert on oslira.notes to service_role;
"""


class ThreeSteps:
    """``go_on``: file that ends every halt once it exists; None disables halts."""

    def __init__(self, database, go_on):
        self._session = database.admin("tests")
        self._go_on = go_on

    async def note(self, run_id, place):
        await self._session.fetch(NOTE, run_id, place, os.getpid())

    async def halt(self, run, place):
        if self._go_on and run.subject.get("halt_at") == place:
            await self.note(run.id, f"halted {place}")
            await until(self._go_on.exists, timeout_s=300)

    async def execute(self, work: RunContext) -> RunResult:
        for number in (1, 2, 3):
            await self.halt(work.run, f"before:{number}")
            total = await work.step(
                f"step_{number}",
                lambda number=number: self.effect(work.run, number),
                returns=int,
                percent=number * 25,
            )
            assert total == number * 10
            await self.halt(work.run, f"after:{number}")

        async def deliver() -> None:
            await self.note(work.run.id, "delivered")

        ending = RunEnd(status="completed", outcome="completed", credits_charged=work.run.credits_held)
        return RunResult(ending, deliver)

    async def effect(self, run, number) -> int:
        await self.note(run.id, f"step_{number}")
        try:
            await self.halt(run, f"inside:{number}")
        except asyncio.CancelledError:
            await self.note(run.id, f"interrupted step_{number}")
            raise
        await asyncio.sleep(float(run.subject.get("seconds", 0)))
        return number * 10


class HaltingRuns(PostgresRuns):
    """Halts outside the workflow: when a run begins, and after its end before DBOS has stored it."""

    def __init__(self, session, steps):
        super().__init__(session)
        self._steps = steps

    async def begin(self, account_id, run_id, **options):
        if run := await self.find(account_id, run_id):
            await self._steps.halt(run, "begin")
        return await super().begin(account_id, run_id, **options)

    async def finish(self, run, ending, deliver=None):
        outcome = await super().finish(run, ending, deliver)
        await self._steps.halt(run, "end")
        return outcome


@asynccontextmanager
async def parts(place, *, go_on=None):
    async with open_resources(place) as resources:
        yield three_steps_on(resources, go_on=go_on)


def three_steps_on(resources, *, go_on=None):
    steps = ThreeSteps(resources.database, go_on)
    made = engine_config(resources, WorkerParts(workflows=(Workflow(KIND, steps.execute),)), queues=QUEUES)
    runs = HaltingRuns(resources.database.admin("tests"), steps)
    return dataclasses.replace(made, executions=runs, warm_up=nothing)


async def nothing():
    """No warm-up: these workflows use no provider clients."""


def run_server(environ, go_on):
    """Main function of a server process with an embedded worker."""

    async def side_task(resources, stopping):
        await supervise_engine(three_steps_on(resources, go_on=go_on), stopping, resources.engine)

    here = read_runtime(environ)
    start_logs(here.settings, level=logging.ERROR)
    uvloop.run(serve(here, side_task=side_task))


async def run_until_terminated(opened):
    async with opened as config:
        await run_engine(config, {}, termination())


def run_worker(environ, go_on):
    """Main function of a worker process; exits with code 1 when the worker was fenced."""
    here = read_runtime(environ)
    start_logs(here.settings, level=logging.ERROR)
    try:
        uvloop.run(run_until_terminated(parts(here, go_on=go_on)))
    except WorkerFenced:
        sys.exit(1)
