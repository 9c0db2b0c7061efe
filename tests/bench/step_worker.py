"""Worker with the production wiring, whose runs do nothing in a given number of durable steps."""

import dataclasses
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvloop
from runs import KIND

from core.engine.run_context import RunContext
from core.engine.workflow import RunResult, Workflow
from core.processes.worker import Duties, work
from core.wiring.bootstrap import Runtime, runtime, start_logs
from core.wiring.engine import opened_duties
from features.runs.domain.run import RunEnd


async def nothing() -> int:
    return 0


async def no_clients() -> None:
    """Prepares no provider clients, because they would be measured although no run uses them."""


async def carry_out(work: RunContext) -> RunResult:
    steps = work.run.subject["steps"]
    for number in range(steps):
        await work.step(f"step_{number}", nothing, returns=int, percent=100 * number // steps)
    ending = RunEnd(status="completed", outcome="completed", credits_charged=work.run.credits_held)
    return RunResult(ending)


@asynccontextmanager
async def duties(place: Runtime) -> AsyncGenerator[Duties]:
    async with opened_duties(place) as (opened, _):
        yield dataclasses.replace(opened, workflows=(Workflow(KIND, carry_out),), warm_up=no_clients), {}


if __name__ == "__main__":
    here = runtime(os.environ)
    start_logs(here.settings, level=logging.WARNING)
    uvloop.run(work(duties(here)))
