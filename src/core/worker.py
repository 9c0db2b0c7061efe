"""The process that carries out runs and nothing else."""

import asyncio
import signal
from contextlib import AbstractAsyncContextManager

from core.attendants import Attendant, attend
from core.engine.engine import EngineParts, running_engine
from core.engine.keeper import first_of

Duties = tuple[EngineParts, dict[str, Attendant]]


class GivenUp(RuntimeError):
    """Others took this process for dead. It has stopped; whoever watches over it starts it again."""

    def __str__(self) -> str:
        return "This worker was silent for too long: others have its work, and it has stopped."


async def work(opened_duties: AbstractAsyncContextManager[Duties]) -> None:
    """Until SIGTERM or SIGINT. Raises GivenUp."""
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_stop.set)
    async with opened_duties as (parts, attendants), running_engine(parts) as engine:
        attending = asyncio.create_task(attend(attendants, told_to_stop))
        await first_of(told_to_stop, engine.given_up)
        is_given_up = engine.given_up.is_set()
        told_to_stop.set()
        await attending
    if is_given_up or engine.given_up.is_set():
        raise GivenUp
