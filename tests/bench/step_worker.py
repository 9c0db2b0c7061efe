"""The worker as it is wired, but its runs do nothing, in as many durable steps as they name."""

import dataclasses
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvloop
from runs import KIND

from core.engine.execution import Finished, Workflow
from core.engine.work import Work
from core.wiring.engine import opened_duties
from core.wiring.place import Surroundings, start_logs, surroundings
from core.worker import Duties, work
from features.runs.domain.run import Ending


async def nothing() -> int:
    return 0


async def no_clients() -> None:
    """Nobody outside is asked: clients that were made ready would be counted, and not used."""


async def carry_out(work: Work) -> Finished:
    steps = work.run.subject["steps"]
    for number in range(steps):
        await work.step(f"step_{number}", nothing, returns=int, percent=100 * number // steps)
    ending = Ending(status="completed", outcome="completed", credits_charged=work.run.credits_held)
    return Finished(ending)


@asynccontextmanager
async def duties(place: Surroundings) -> AsyncGenerator[Duties]:
    async with opened_duties(place) as (opened, _):
        yield dataclasses.replace(opened, workflows=(Workflow(KIND, carry_out),), warm_up=no_clients), {}


if __name__ == "__main__":
    here = surroundings(os.environ)
    start_logs(here.settings, level=logging.WARNING)
    uvloop.run(work(duties(here)))
