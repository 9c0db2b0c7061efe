"""API server process with an embedded worker."""

import asyncio
import os
import re
import sys
import time
from datetime import timedelta

import httpx
import pytest

from core.settings.settings import Settings
from core.wiring.bootstrap import local_issuer
from tests.conftest import PROJECT
from tests.support import answers, free_port, until
from tests.system.engine.conftest import code_of
from tests.system.engine.three_steps import run_server

DRAINING = "select count(*) from traffic.workers where is_draining and stopped_at is null"
HEAD = b"GET /health HTTP/1.1\r\nHost: test\r\n"


def operator_with(folder):
    """Return the headers of an operator of the server with this data folder."""
    issuer = local_issuer(Settings(data_dir=folder))
    token = issuer.token("operator@example.com", lifetime=timedelta(hours=1), is_operator=True)
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
async def server(workers):
    """Server process that halts where runs request it, and its port."""
    port = free_port()
    process = await workers.start(
        does=run_server, halts=True, OSLIRA_PORT=str(port), OSLIRA_DRAIN_SECONDS="3"
    )
    await until(lambda: answers(port))
    return process, port


async def test_server_executes_runs_while_it_answers_requests(server, workers, book):
    _, port = server
    run_id, halted = await book.start(), await book.start(halt_at="inside:2")
    await book.ended([run_id])
    await book.noted([halted], "halted inside:2")

    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        page = (await client.get("/health/ready", headers=operator_with(workers.go_on.parent))).json()

    assert (await book.find(run_id)).status == "completed"
    assert re.search(r"this process is [0-9a-f]{8}; 0 queued", page["bindings"]["engine"]["detail"])
    assert await book.all_charged_once() is False  # the halted run still holds its credits


async def test_stopping_server_answers_accepted_requests_and_reenqueues_its_runs(server, workers, book):
    process, port = server
    run_id = await book.start(halt_at="inside:2")
    await book.noted([run_id], "halted inside:2")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HEAD)
    await writer.drain()

    stopped_at = time.monotonic()
    process.terminate()
    await until(lambda: book.owner.fetchval(DRAINING))
    await until(lambda: not answers(port))
    writer.write(b"\r\n")
    answer = await reader.readuntil(b"\r\n")
    writer.close()

    assert answer == b"HTTP/1.1 200 OK\r\n"
    assert await code_of(process) == 0
    assert time.monotonic() - stopped_at < 20
    run = await book.find(run_id)
    assert (run.status, await book.in_engine(run_id)) == ("processing", "ENQUEUED")

    await workers.start()
    await book.ended([run_id])
    assert (await book.find(run_id)).status == "completed"
    assert (await book.notes(run_id)).count("step_1") == 1
    assert await book.all_charged_once()


async def test_serve_command_answers_before_the_engine_starts_and_stops_both(engine_addresses, tmp_path):
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "core.cli.main", "serve", "--port", str(port)),
        env={
            **os.environ,
            "PYTHONPATH": str(PROJECT / "src"),
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": engine_addresses.owner,
            "OSLIRA_DATA_DIR": str(tmp_path),
        },
        stderr=asyncio.subprocess.PIPE,
    )
    await until(lambda: answers(port) or process.returncode is not None, timeout_s=120)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        page = (await client.get("/health/ready", headers=operator_with(tmp_path))).json()
    async for line in process.stderr:
        if b"engine_started" in line:
            break
    process.terminate()
    _, rest = await process.communicate()

    assert "the worker of this process is starting" in page["bindings"]["engine"]["detail"]
    assert process.returncode == 0
    assert b"engine_stopped" in rest
