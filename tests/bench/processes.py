"""Programs beside this one: servers to measure, and the tools that load them."""

import asyncio
import re
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from place import PROJECT, BenchFailed, Place

from core.server import free_port
from infrastructure.database.embedded import packaged_binaries

HOST = "127.0.0.1"
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 30
POLL_INTERVAL_S = 0.05
LOG_TAIL_LENGTH = 2_000

BENCH = Path(__file__).parent
OURS = Path(sys.executable)  # not resolved: it is the link that makes the environment
PEERS = PROJECT / ".venv-peer" / "bin" / "python"


@asynccontextmanager
async def oslira(place: Place) -> AsyncGenerator[str]:
    port = free_port(HOST, 0)
    command = (OURS.with_name("oslira"), "serve", "--port", port)
    async with _server("oslira", command, place.environ, place.folder, port) as address:
        yield address


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
async def peer(place: Place, public_key: str) -> AsyncGenerator[str]:
    if not PEERS.exists():
        raise BenchFailed("The peer's environment is missing: start this with scripts/bench.")
    port = free_port(HOST, 0)
    command = (
        PEERS, "-m", "uvicorn", "app:app", "--app-dir", BENCH / "peer", "--host", HOST, "--port", port,
        "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning",
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
    log = folder / f"{name}.log"
    address = f"http://{HOST}:{port}"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *map(str, command), stdin=DEVNULL, stdout=output, stderr=STDOUT, env=environ
        )
    try:
        if not await _answers(address, process):
            tail = log.read_text(errors="replace")[-LOG_TAIL_LENGTH:]
            raise BenchFailed(f"{name} did not come up on {address}. Its last words:\n{tail}")
        yield address
    finally:
        await _end(process)


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


async def _end(process: Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def run(*command: object, environ: Mapping[str, str] | None = None) -> str:
    """What a program prints. Raises BenchFailed with what it complains of."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=environ
    )
    try:
        output, complaint = await process.communicate()
    finally:
        await _end(process)
    if process.returncode != 0:
        raise BenchFailed(f"{command[0]} failed:\n{complaint.decode(errors='replace')}")
    return output.decode()


async def wrk(url: str, seconds: int, headers: Mapping[str, str], script: Path | None = None) -> float:
    """Requests per second over 32 connections. A single refusal or broken connection is a failure."""
    program = shutil.which("wrk")
    if program is None:
        raise BenchFailed("wrk is missing: apt install wrk, or brew install wrk.")
    options = [option for item in headers.items() for option in ("-H", ": ".join(item))]
    options += ["-s", str(script)] if script else []
    # Slow is slow, not broken: the rate tells.
    output = await run(program, "-t1", "-c32", f"-d{seconds}s", "--timeout", "30s", *options, url)
    if "Non-2xx" in output or "Socket errors" in output:
        raise BenchFailed(f"{url} did not answer every request with success:\n{output}")
    return _number(r"Requests/sec:\s+([\d.]+)", output)


async def pgbench(url: str, script: Path, seconds: int) -> tuple[float, int]:
    """Transactions per second of 16 connections, and how many transactions that were."""
    output = await run(
        packaged_binaries() / "pgbench", "--no-vacuum", "--client=16", "--jobs=1", "--protocol=prepared",
        f"--time={seconds}", f"--file={script}", url,
    )  # fmt: skip
    if _number(r"number of failed transactions: (\d+)", output):
        raise BenchFailed(f"Transactions of pgbench failed:\n{output}")
    return (
        _number(r"tps = ([\d.]+)", output),
        int(_number(r"number of transactions actually processed: (\d+)", output)),
    )


def _number(pattern: str, output: str) -> float:
    match = re.search(pattern, output)
    if match is None:
        raise BenchFailed(f"No {pattern!r} in:\n{output}")
    return float(match[1])
