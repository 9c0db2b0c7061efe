"""Process of the simulators: listens on a free port and ends with its parent process."""

import asyncio
import logging
import signal
import sys
from pathlib import Path

from infrastructure.identity.tokens import LocalIssuer
from infrastructure.monitoring.logs import configure_logs
from shared.http_server import HttpServer
from shared.listen_socket import bind, listen
from simulators.app import create_simulators

HOST = "127.0.0.1"
BACKLOG = 1_024
# The server neither rejects nor serves connections beyond its limit, so their calls would hang.
CONNECTIONS_MAX = 10_000


async def serve_simulators(
    data_dir: Path,
    issuer: LocalIssuer,
    *,
    port: int,
    until_stdin_ends: bool,
    latency_scale: float = 0.0,
) -> None:
    """Prints the address once the server accepts connections."""
    bound = bind(HOST, port)
    port = bound.getsockname()[1]
    logging.getLogger("_granian").setLevel(logging.ERROR)
    simulators, background = create_simulators(data_dir, issuer, latency_scale=latency_scale)
    server = HttpServer(simulators, bound, backlog=BACKLOG, backpressure=CONNECTIONS_MAX)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    listen(bound, BACKLOG)
    serving = asyncio.create_task(server.serve())
    # The server's own stop would wait for responses that simulate a timeout and never end.
    ends = {serving, asyncio.create_task(background), asyncio.create_task(stopped.wait())}
    if until_stdin_ends:
        ends.add(asyncio.create_task(_stdin_ends()))
    try:
        print(f"http://{HOST}:{port}", flush=True)  # noqa: T201  the parent process reads it
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in ends:
            task.cancel()


async def _stdin_ends() -> None:
    """Returns when the parent process ends for any reason, because only the parent holds the pipe open."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1_024):
        pass


if __name__ == "__main__":
    _, data_dir, issuer, audience, *rest = sys.argv
    configure_logs(as_json=False)
    folder = Path(data_dir)
    asyncio.run(
        serve_simulators(
            folder,
            LocalIssuer(folder / "identity", issuer=issuer, audience=audience),
            port=0,
            until_stdin_ends=True,
            latency_scale=float(rest[0]) if rest else 0.0,
        )
    )
