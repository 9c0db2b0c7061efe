"""Load generators and their results."""

import asyncio
import re
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from place import BenchFailed, ProgramMissing
from processes import end

from infrastructure.database.embedded_postgres import packaged_binaries


async def run(*command: object, environ: Mapping[str, str] | None = None) -> str:
    """Returns the program's output. Raises BenchFailed with its error output."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=environ
    )
    try:
        output, complaint = await process.communicate()
    finally:
        await end(process)
    if process.returncode != 0:
        raise BenchFailed(f"{command[0]} failed:\n{complaint.decode(errors='replace')}")
    return output.decode()


class Load(NamedTuple):
    requests_per_s: float
    requests_count: int
    p95_us: float


async def wrk(url: str, seconds: int, headers: Mapping[str, str], script: Path | None = None) -> float:
    """Returns requests per second over 32 connections. Any error status or broken connection is a failure."""
    options = [option for item in headers.items() for option in ("-H", ": ".join(item))]
    options += ["-s", str(script)] if script else []
    return _rate(await _wrk(url, seconds, options))


async def wrk_load(url: str, seconds: int, script: Path, *arguments: str) -> Load:
    """The same with a script that prints ``p95: 123 us``; the arguments are the script's."""
    output = await _wrk(url, seconds, ["-s", str(script)], arguments)
    return Load(
        requests_per_s=_rate(output),
        requests_count=int(_number(r"(\d+) requests in", output)),
        p95_us=_number(r"p95: (\d+) us", output),
    )


async def _wrk(url: str, seconds: int, options: list[str], arguments: tuple[str, ...] = ()) -> str:
    tool = shutil.which("wrk")
    if tool is None:
        raise ProgramMissing("wrk is missing: apt install wrk, or brew install wrk.")
    # A long timeout, because slow responses count in the rate and are not failures.
    common = ("-t1", "-c32", f"-d{seconds}s", "--timeout", "30s")
    output = await run(tool, *common, *options, url, *arguments)
    if "Non-2xx" in output or "Socket errors" in output:
        raise BenchFailed(f"{url} did not answer every request with success:\n{output}")
    return output


def _rate(output: str) -> float:
    return _number(r"Requests/sec:\s+([\d.]+)", output)


async def pgbench(url: str, script: Path, seconds: int) -> tuple[float, int]:
    """Returns the transactions per second of 16 connections, and the number of transactions."""
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
