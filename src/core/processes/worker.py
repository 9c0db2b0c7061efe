"""Worker process that executes runs."""

import asyncio
import signal
from contextlib import AbstractAsyncContextManager

from core.engine.engine import EngineConfig, running_engine
from core.engine.supervisor import wait_any
from core.processes.background import BackgroundService, run_services

Duties = tuple[EngineConfig, dict[str, BackgroundService]]


class WorkerFenced(RuntimeError):
    """Other workers considered this process dead. It has stopped; its process manager must restart it."""

    def __str__(self) -> str:
        return "This worker was silent for too long: others have its work, and it has stopped."


async def work(opened_duties: AbstractAsyncContextManager[Duties]) -> None:
    """Run until SIGTERM or SIGINT. Raises WorkerFenced."""
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_stop.set)
    async with opened_duties as (parts, attendants), running_engine(parts) as engine:
        attending = asyncio.create_task(run_services(attendants, told_to_stop))
        await wait_any(told_to_stop, engine.fenced)
        is_given_up = engine.fenced.is_set()
        told_to_stop.set()
        await attending
    if is_given_up or engine.fenced.is_set():
        raise WorkerFenced
