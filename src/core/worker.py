"""The process that carries out runs and nothing else."""

import asyncio
import signal
from contextlib import AbstractAsyncContextManager

from core.engine.engine import EngineParts, running_engine
from core.engine.keeper import first_of


class GivenUp(RuntimeError):
    """Others took this process for dead. It has stopped; whoever watches over it starts it again."""

    def __str__(self) -> str:
        return "This worker was silent for too long: others have its work, and it has stopped."


async def work(opened_parts: AbstractAsyncContextManager[EngineParts]) -> None:
    """Until SIGTERM or SIGINT. Raises GivenUp."""
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_stop.set)
    async with opened_parts as parts, running_engine(parts) as engine:
        await first_of(told_to_stop, engine.given_up)
    if engine.given_up.is_set():
        raise GivenUp
