"""API server process: granian in our event loop, drained before exit."""

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog
from granian.http import HTTP1Settings
from litestar.types import ASGIApp

from core.app import create_app
from core.processes.embedded_worker import SideTask
from core.processes.listen_address import own_address
from core.wiring.application import Application, build
from core.wiring.bootstrap import Runtime
from core.wiring.resources import Resources
from shared.http_server import HttpServer
from shared.listen_socket import bind, listen

BACKLOG = 1_024
BUFFER_BYTES_MAX = 65_536  # per connection: limits the headers and each received chunk of a body

log: structlog.stdlib.BoundLogger = structlog.get_logger("server")

Companion = Callable[[str], Awaitable[bool]]
"""Task that receives the server's address; returns False to stop the server."""


AppWrapper = Callable[[ASGIApp], ASGIApp]


async def serve(
    place: Runtime,
    companion: Companion | None = None,
    *,
    beside: SideTask | None = None,
    wrap_app: AppWrapper | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; then accept no more connections, finish open requests and return. The
    ``beside`` task receives the stop event at the same time and is awaited.
    """
    with bind(place.settings.host, place.settings.port) as bound:
        await _serve_on(bound, place, companion, beside, wrap_app)


async def _serve_on(
    bound: socket.socket,
    place: Runtime,
    companion: Companion | None,
    beside: SideTask | None,
    wrap_app: AppWrapper | None,
) -> None:
    settings, port = place.settings, bound.getsockname()[1]
    logging.getLogger("_granian").setLevel(logging.ERROR)
    async with build(place) as application:
        app = create_app(application)
        place.report_step(f"Starting the API at {own_address(settings.host, port)}")
        server = HttpServer(
            app if wrap_app is None else wrap_app(app),
            bound,
            backlog=BACKLOG,
            # The server closes a connection that is idle or sends incomplete headers for this long.
            http1_settings=HTTP1Settings(
                header_read_timeout=settings.client_deadline_s * 1_000, max_buffer_size=BUFFER_BYTES_MAX
            ),
        )
        stopping = asyncio.Event()

        def stop() -> None:
            stopping.set()
            server.stop()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        listen(bound, BACKLOG)
        serving = asyncio.create_task(server.serve())
        address = application.foundation.serving.address = own_address(settings.host, port)
        log.info("listening", address=address, environment=settings.environment)
        async with _beside(beside, application.foundation, stopping):
            try:
                if companion is not None and not await _unless_ended(companion(address), serving):
                    stop()
                await _until_drained(serving, server, application)
            finally:
                serving.cancel()
        log.info("stopped")


@asynccontextmanager
async def _beside(
    beside: SideTask | None, foundation: Resources, stopping: asyncio.Event
) -> AsyncGenerator[None]:
    if beside is None:
        yield
        return
    doing = asyncio.ensure_future(beside(foundation, stopping))
    try:
        yield
    finally:
        stopping.set()
        await doing


async def _unless_ended(work: Awaitable[bool], serving: asyncio.Task[None]) -> bool:
    """Return the result of ``work``, or False when the server ends first."""
    task = asyncio.ensure_future(work)
    await asyncio.wait({task, serving}, return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        return False
    return task.result()


async def _until_drained(serving: asyncio.Task[None], server: HttpServer, application: Application) -> None:
    asked_to_stop = asyncio.create_task(server.main_loop_interrupt.wait())
    await asyncio.wait({serving, asked_to_stop}, return_when=asyncio.FIRST_COMPLETED)
    asked_to_stop.cancel()
    drain_s = application.settings.drain_s
    log.info("draining", seconds_max=drain_s)
    application.runs.live.close()  # requests that wait for a run would delay the drain
    done, _ = await asyncio.wait({serving}, timeout=drain_s)
    if not done:
        log.warning("drain_cut_short")
    for task in done:
        task.result()  # raises the error of a server that ended by itself
