"""Worker with the production wiring, whose runs do nothing in a given number of durable steps."""

import dataclasses
import logging
import os

import uvloop
from runs import KIND

from core.engine.run_context import RunContext
from core.engine.workflow import RunResult, Workflow
from core.processes.signals import termination
from core.processes.worker import run_engine
from core.wiring.bootstrap import Runtime, read_runtime, start_logs
from core.wiring.engine import engine_config
from core.wiring.resources import open_resources
from core.wiring.slice import WorkerParts
from features.runs.domain.run import RunEnd


async def nothing() -> int:
    return 0


async def no_clients() -> None:
    """Prepares no provider clients, because they would be measured although no run uses them."""


async def execute(work: RunContext) -> RunResult:
    steps = work.run.subject["steps"]
    for number in range(steps):
        await work.step(f"step_{number}", nothing, returns=int, percent=100 * number // steps)
    ending = RunEnd(status="completed", outcome="completed", credits_charged=work.run.credits_held)
    return RunResult(ending)


async def run_worker(runtime: Runtime) -> None:
    async with open_resources(runtime) as resources:
        config = engine_config(resources, WorkerParts(workflows=(Workflow(KIND, execute),)))
        await run_engine(dataclasses.replace(config, warm_up=no_clients), {}, termination())


if __name__ == "__main__":
    here = read_runtime(os.environ)
    start_logs(here.settings, level=logging.WARNING)
    uvloop.run(run_worker(here))
