"""Watching a run to its end, and what Ctrl-C means meanwhile."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from http import HTTPStatus
from typing import IO, Any

import click

from core.cli.client.api_client import Api, pause_s
from core.cli.client.schemas import Run

WAIT_S = 10  # how long the server may hold our question until there is news
PAUSE_S = 2.0
INTERRUPTED = 130
EXIT_CODES = {"completed": 0, "failed": 1, "cancelled": INTERRUPTED}

Show = Callable[[Run], None]


class WatchInterrupted(click.ClickException):
    """The run goes on without us."""

    exit_code = INTERRUPTED

    def __init__(self, run_id: str, said: str) -> None:
        super().__init__(
            f"{said} Watch it again with: oslira runs watch {run_id}\n"
            f"Stop it with: oslira runs cancel {run_id}"
        )

    def show(self, file: IO[Any] | None = None) -> None:
        """Not as an error: it is what was asked for."""
        click.echo(self.message, file=file, err=True)


async def watched(api: Api, run_id: str, show: Show) -> Run:
    """The run once it has ended."""
    loop = asyncio.get_running_loop()
    tag: str | None = None
    while True:
        asked_at = loop.time()
        response = await api.send(
            "GET",
            f"/v1/runs/{run_id}",
            parameters={"wait": WAIT_S} if tag else None,
            headers={"If-None-Match": tag} if tag else None,
        )
        if response.status_code == HTTPStatus.NOT_MODIFIED:
            # Held back until there was news, or not at all: either way no more often than we are told.
            await asyncio.sleep(asked_at + pause_s(response, PAUSE_S) - loop.time())
            continue
        run = api.decoded(response, Run)
        show(run)
        if run.is_ended:
            return run
        tag = response.headers.get("etag")
        if tag is None:  # nothing to wait for news with
            await asyncio.sleep(pause_s(response, PAUSE_S))


async def _unless_interrupted(watching: Coroutine[Any, Any, Run], pressed: asyncio.Event) -> Run | None:
    """None: Ctrl-C was pressed first."""
    run = asyncio.create_task(watching)
    interrupted = asyncio.create_task(pressed.wait())
    try:
        await asyncio.wait({run, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        return run.result() if run.done() else None
    finally:
        run.cancel()
        interrupted.cancel()


@contextmanager
def interruptible() -> Generator[asyncio.Event]:
    """Set by Ctrl-C, which means nothing else meanwhile."""
    pressed = asyncio.Event()
    loop = asyncio.get_running_loop()
    is_heard = False
    with suppress(RuntimeError, ValueError):  # only a process's first thread hears of keys
        loop.add_signal_handler(signal.SIGINT, pressed.set)
        is_heard = True
    try:
        yield pressed
    finally:
        if is_heard:
            loop.remove_signal_handler(signal.SIGINT)


def wants_to_cancel() -> bool:
    """Whoever cannot be asked has said enough."""
    if not sys.stdin.isatty():
        return True
    try:
        return click.confirm("Cancel the run? Otherwise it goes on", default=True, err=True)
    except click.Abort:
        return False


async def attended(
    api: Api,
    run_id: str,
    bar: Callable[[], AbstractContextManager[Show]],
    *,
    keys: Callable[[], AbstractContextManager[asyncio.Event]] = interruptible,
    asks: Callable[[], bool] = wants_to_cancel,
) -> Run:
    """The run once it has ended. Ctrl-C offers to cancel it; raises LeftAlone when it is not waited for."""
    with keys() as pressed, bar() as show:
        run = await _unless_interrupted(watched(api, run_id, show), pressed)
    if run is not None:
        return run
    if not asks():
        raise WatchInterrupted(run_id, "It goes on.")
    await api.send("POST", f"/v1/runs/{run_id}/cancel")
    with keys() as pressed, bar() as show:
        run = await _unless_interrupted(watched(api, run_id, show), pressed)
    if run is None:
        raise WatchInterrupted(run_id, "It was asked to stop and has not stopped yet.")
    return run
