"""HTTP floor: Litestar routes that do nothing, served as ``core.processes.server`` serves ours.

Usage: empty_app.py PORT
"""

import asyncio
import signal
import sys

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server
from litestar import Litestar, get, post
from litestar.types import ASGIApp

from core.processes.server import BACKLOG
from core.settings.settings import Settings


@get("/")
async def nothing() -> None:
    pass


@post("/", status_code=202)
async def nothing_again() -> None:
    pass


@get("/health", sync_to_thread=False)
def health() -> dict[str, str]:
    return {"status": "ok"}


def server_of(app: ASGIApp, port: int) -> Server:
    return Server(
        app,
        address="127.0.0.1",
        port=port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=BACKLOG,
        http1_settings=HTTP1Settings(header_read_timeout=Settings().client_deadline_s * 1_000),
        log_enabled=False,
    )


async def serve(port: int) -> None:
    server = server_of(
        Litestar([nothing, nothing_again, health], openapi_config=None, logging_config=None), port
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    await server.serve()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
