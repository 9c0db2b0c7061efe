"""API server process: granian in our event loop, drained before exit."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog
from granian.http import HTTP1Settings
from litestar.types import ASGIApp

from core.app import create_app
from core.processes.embedded_worker import SideTask
from core.processes.listen_address import own_address
from core.processes.signals import on_termination
from core.settings.settings import Settings
from core.wiring.application import Application, build
from core.wiring.bootstrap import Runtime
from core.wiring.slice import Resources
from features.runs.application.live_runs import LiveRuns
from shared.http_server import HttpServer
from shared.listen_socket import bind, listen

BACKLOG = 1_024
BUFFER_BYTES_MAX = 65_536  # per connection: limits the headers and each received chunk of a body

log: structlog.stdlib.BoundLogger = structlog.get_logger("server")

Companion = Callable[[str], Awaitable[bool]]
"""Task that receives the server's address; returns False to stop the server."""
AppWrapper = Callable[[ASGIApp], ASGIApp]


async def serve(
    runtime: Runtime,
    companion: Companion | None = None,
    *,
    side_task: SideTask | None = None,
    wrap_app: AppWrapper | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; then accept no more connections, finish open requests and return. The
    side task receives the stop event at the same time and is awaited.
    """
    with bind(runtime.settings.host, runtime.settings.port) as bound:
        logging.getLogger("_granian").setLevel(logging.ERROR)
        async with build(runtime) as application:
            address = own_address(runtime.settings.host, bound.getsockname()[1])
            runtime.report_step(f"Starting the API at {address}")
            app = create_app(application)
            server = _server(bound, app if wrap_app is None else wrap_app(app), runtime.settings)
            application.resources.listen_address.address = address
            await _run(bound, server, application, companion, side_task)
            log.info("server_stopped")


async def _run(
    bound: socket.socket,
    server: HttpServer,
    application: Application,
    companion: Companion | None,
    side_task: SideTask | None,
) -> None:
    stopping = asyncio.Event()

    def stop() -> None:
        stopping.set()
        server.stop()

    on_termination(stop)
    listen(bound, BACKLOG)
    serving = asyncio.create_task(server.serve())
    address = application.resources.listen_address.address or ""
    log.info("server_started", address=address, environment=application.settings.environment)
    async with _running(side_task, application.resources, stopping):
        try:
            if companion is not None and not await _unless_ended(companion(address), serving):
                stop()
            await _until_drained(serving, server, application)
        finally:
            serving.cancel()


def _server(bound: socket.socket, app: ASGIApp, settings: Settings) -> HttpServer:
    return HttpServer(
        app,
        bound,
        backlog=BACKLOG,
        # The server closes a connection that is idle or sends incomplete headers for this long.
        http1_settings=HTTP1Settings(
            header_read_timeout=settings.client_deadline_s * 1_000,
            max_buffer_size=BUFFER_BYTES_MAX,
        ),
    )


@asynccontextmanager
async def _running(
    side_task: SideTask | None, resources: Resources, stopping: asyncio.Event
) -> AsyncGenerator[None]:
    if side_task is None:
        yield
        return
    running = asyncio.ensure_future(side_task(resources, stopping))
    try:
        yield
    finally:
        stopping.set()
        await running


async def _unless_ended(call: Awaitable[bool], serving: asyncio.Task[None]) -> bool:
    """Return the result of ``call``, or False when the server ends first."""
    task = asyncio.ensure_future(call)
    await asyncio.wait({task, serving}, return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        return False
    return task.result()


async def _until_drained(serving: asyncio.Task[None], server: HttpServer, application: Application) -> None:
    interrupted = asyncio.create_task(server.main_loop_interrupt.wait())
    await asyncio.wait({serving, interrupted}, return_when=asyncio.FIRST_COMPLETED)
    interrupted.cancel()
    drain_s = application.settings.drain_s
    log.info("drain_started", seconds_max=drain_s)
    application.get(LiveRuns).close()  # requests that wait for a run would delay the drain
    done, _ = await asyncio.wait({serving}, timeout=drain_s)
    if not done:
        log.warning("drain_timed_out")
    for task in done:
        task.result()  # raises the error of a server that ended by itself
