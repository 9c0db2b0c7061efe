"""Termination signals of a process."""

import asyncio
import signal
from collections.abc import Callable


def on_termination(call: Callable[[], object]) -> None:
    """Call ``call`` in the running event loop after SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, call)


def termination() -> asyncio.Event:
    """Return an event that is set after SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    on_termination(stopping.set)
    return stopping
