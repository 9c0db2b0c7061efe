"""The worker as it is wired, but its runs do nothing, in as many durable steps as they name."""

import dataclasses
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvloop
from runs import KIND

from core.engine.engine import EngineParts
from core.engine.execution import Finished, Workflow
from core.engine.work import Work
from core.wiring.engine import opened_parts
from core.wiring.place import Surroundings, start_logs, surroundings
from core.worker import work
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
async def parts(place: Surroundings) -> AsyncGenerator[EngineParts]:
    async with opened_parts(place) as opened:
        yield dataclasses.replace(opened, workflows=(Workflow(KIND, carry_out),), warm_up=no_clients)


if __name__ == "__main__":
    here = surroundings(os.environ)
    start_logs(here.settings, level=logging.WARNING)
    uvloop.run(work(parts(here)))
