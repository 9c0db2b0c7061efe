"""Child processes of the benchmark: servers to measure, and workers."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, STDOUT, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from place import PROJECT, BenchFailed, Place

from shared.listen_socket import free_port

HOST = "127.0.0.1"
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 30
POLL_INTERVAL_S = 0.05
LOG_TAIL_LENGTH = 2_000

BENCH = Path(__file__).parent
OURS = Path(sys.executable)  # not resolved, because the link selects the virtual environment
PEERS = PROJECT / ".venv-peer" / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Program:
    """A running program; the code that started it must end it."""

    name: str
    process: Process
    log: Path

    def failure(self, what: str) -> BenchFailed:
        tail = self.log.read_text(errors="replace")[-LOG_TAIL_LENGTH:]
        return BenchFailed(f"{self.name} {what}. Its last words:\n{tail}")

    def check(self) -> None:
        """Raises BenchFailed when the program has ended."""
        if self.process.returncode is not None:
            raise self.failure(f"ended with {self.process.returncode}")


@asynccontextmanager
async def program(
    name: str, command: tuple[object, ...], environ: Mapping[str, str], folder: Path
) -> AsyncGenerator[Program]:
    log = folder / f"{name}.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *map(str, command), stdin=DEVNULL, stdout=output, stderr=STDOUT, env=environ
        )
    try:
        yield Program(name, process, log)
    finally:
        await end(process)


@asynccontextmanager
async def oslira(
    place: Place, command: str = "api", environ: Mapping[str, str] | None = None
) -> AsyncGenerator[str]:
    """``api`` only serves HTTP, ``serve`` also runs a worker."""
    port = free_port(HOST, 0)
    line = (OURS.with_name("oslira"), command, "--port", port)
    async with _server("oslira", line, {**place.environ, **(environ or {})}, place.folder, port) as address:
        yield address


@asynccontextmanager
async def oslira_on(place: Place, port: int) -> AsyncGenerator[Program]:
    """Starts the same API process on a fixed port, for a caller that kills it."""
    line = (OURS.with_name("oslira"), "api", "--port", port)
    async with program("oslira", line, place.environ, place.folder) as server:
        await _answers_on(server, port)
        yield server


@asynccontextmanager
async def empty_app(place: Place) -> AsyncGenerator[str]:
    port = free_port(HOST, 0)
    command = (OURS, BENCH / "empty_app.py", port)
    async with _server("empty_app", command, place.environ, place.folder, port) as address:
        yield address


@asynccontextmanager
async def open_app(place: Place, principals: int) -> AsyncGenerator[str]:
    port = free_port(HOST, 0)
    command = (OURS, BENCH / "open_app.py", port, principals)
    async with _server("open_app", command, place.environ, place.folder, port) as address:
        yield address


@asynccontextmanager
async def step_worker(place: Place) -> AsyncGenerator[Program]:
    command = (OURS, BENCH / "step_worker.py")
    async with program("step_worker", command, place.environ, place.folder) as worker:
        yield worker


def peers_python() -> Path:
    if not PEERS.exists():
        raise BenchFailed("The peer's environment is missing: start this with scripts/bench.")
    return PEERS


@asynccontextmanager
async def peer(place: Place, public_key: str) -> AsyncGenerator[str]:
    port = free_port(HOST, 0)
    command = (
        peers_python(), "-m", "uvicorn", "app:app", "--app-dir", BENCH / "peer",
        "--host", HOST, "--port", port, "--loop", "uvloop", "--http", "httptools",
        "--no-access-log", "--log-level", "warning",
    )  # fmt: skip
    environ = {
        **place.environ,
        "DATABASE_URL": place.addresses.user,
        "JWT_PUBLIC_KEY": public_key,
        "JWT_ISSUER": place.settings.identity.issuer,
        "JWT_AUDIENCE": place.settings.identity.audience,
    }
    async with _server("peer", command, environ, place.folder, port) as address:
        yield address


@asynccontextmanager
async def _server(
    name: str, command: tuple[object, ...], environ: Mapping[str, str], folder: Path, port: int
) -> AsyncGenerator[str]:
    async with program(name, command, environ, folder) as server:
        yield await _answers_on(server, port)


async def _answers_on(server: Program, port: int) -> str:
    """Returns the address once the server responds."""
    address = f"http://{HOST}:{port}"
    if not await _answers(address, server.process):
        raise server.failure(f"did not come up on {address}")
    return address


async def _answers(address: str, process: Process) -> bool:
    try:
        async with asyncio.timeout(START_TIMEOUT_S), httpx.AsyncClient() as client:
            while process.returncode is None:
                try:
                    return (await client.get(f"{address}/health")).is_success
                except httpx.TransportError:
                    await asyncio.sleep(POLL_INTERVAL_S)
    except TimeoutError:
        pass
    return False


async def end(process: Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
