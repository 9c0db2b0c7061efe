"""Long polling of a run until it ends, with cancellation by Ctrl-C."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from http import HTTPStatus
from typing import IO, Any

import click

from core.cli.client.api_client import Api, poll_interval_s
from core.cli.output.run_text import is_ended
from features.runs.domain.view import RunResponse

WAIT_S = 10  # how long the server may hold a poll without a change
POLL_INTERVAL_S = 2.0
INTERRUPTED = 130
EXIT_CODES = {"completed": 0, "failed": 1, "cancelled": INTERRUPTED}

Show = Callable[[RunResponse], None]


class WatchInterrupted(click.ClickException):
    """The user stopped watching; the run continues."""

    exit_code = INTERRUPTED

    def __init__(self, run_id: str, reason: str) -> None:
        super().__init__(
            f"{reason} Watch it again with: oslira runs watch {run_id}\n"
            f"Cancel it with: oslira runs cancel {run_id}"
        )

    def show(self, file: IO[Any] | None = None) -> None:
        """Prints the message without "Error:", because the user requested the interruption."""
        click.echo(self.message, file=file, err=True)


async def poll_until_ended(api: Api, run_id: str, show: Show) -> RunResponse:
    """Returns the run when it has ended."""
    loop = asyncio.get_running_loop()
    tag: str | None = None
    while True:
        sent_at = loop.time()
        response = await api.send(
            "GET",
            f"/v1/runs/{run_id}",
            query={"wait": WAIT_S} if tag else None,
            headers={"If-None-Match": tag} if tag else None,
        )
        if response.status_code == HTTPStatus.NOT_MODIFIED:
            # The server may respond with 304 at once, so the next poll waits for the requested interval.
            await asyncio.sleep(sent_at + poll_interval_s(response, POLL_INTERVAL_S) - loop.time())
            continue
        run = api.decode(response, RunResponse)
        show(run)
        if is_ended(run):
            return run
        tag = response.headers.get("etag")
        if tag is None:  # without an ETag, long polling is not possible
            await asyncio.sleep(poll_interval_s(response, POLL_INTERVAL_S))


async def _unless_interrupted(
    watching: Coroutine[Any, Any, RunResponse], pressed: asyncio.Event
) -> RunResponse | None:
    """Returns None if Ctrl-C is pressed before the run ends."""
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
    """Yields an event that Ctrl-C sets instead of interrupting the process."""
    pressed = asyncio.Event()
    loop = asyncio.get_running_loop()
    is_handled = False
    with suppress(RuntimeError, ValueError):  # only the main thread can handle signals
        loop.add_signal_handler(signal.SIGINT, pressed.set)
        is_handled = True
    try:
        yield pressed
    finally:
        if is_handled:
            loop.remove_signal_handler(signal.SIGINT)


def confirm_cancel() -> bool:
    """Asks for confirmation; without a terminal, Ctrl-C itself is the confirmation."""
    if not sys.stdin.isatty():
        return True
    try:
        return click.confirm("Cancel the run? Otherwise it continues", default=True, err=True)
    except click.Abort:
        return False


async def watch_run(
    api: Api,
    run_id: str,
    bar: Callable[[], AbstractContextManager[Show]],
    *,
    interrupts: Callable[[], AbstractContextManager[asyncio.Event]] = interruptible,
    confirm: Callable[[], bool] = confirm_cancel,
) -> RunResponse:
    """Returns the run when it has ended. Ctrl-C offers to cancel it. Raises WatchInterrupted if the user
    stops watching before it has ended.
    """
    with interrupts() as pressed, bar() as show:
        run = await _unless_interrupted(poll_until_ended(api, run_id, show), pressed)
    if run is not None:
        return run
    if not confirm():
        raise WatchInterrupted(run_id, "The run continues.")
    await api.send("POST", f"/v1/runs/{run_id}/cancel")
    with interrupts() as pressed, bar() as show:
        run = await _unless_interrupted(poll_until_ended(api, run_id, show), pressed)
    if run is None:
        raise WatchInterrupted(run_id, "The cancellation is requested, but the run has not stopped yet.")
    return run
