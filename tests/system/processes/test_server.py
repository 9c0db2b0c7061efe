"""The server as a process: slow clients, signals, and a second server on the same port."""

import asyncio
import os
import signal
import sys

import httpx
import pytest

from tests.conftest import PROJECT
from tests.support import answers, free_port, until
from tests.support.application import servers

BODY = b'{"reference": "r", "credits": 1}'


@pytest.fixture(scope="module")
async def impatient_port(addresses, place):
    """Port of a server that waits one second for its clients."""
    async with servers(addresses, place) as start:
        _, port = await start(OSLIRA_CLIENT_DEADLINE_SECONDS="1")
        yield port


def grant_request(account_id, token):
    """Headers of a grant request without the body."""
    lines = (
        f"POST /v1/admin/accounts/{account_id}/credits/grants HTTP/1.1",
        "Host: test",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        f"Content-Length: {len(BODY)}",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


async def test_sigterm_finishes_open_requests_and_accepts_no_new_ones(start, tenant, token):
    process, port = await start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(grant_request(tenant.account_id, token(is_operator=True)) + BODY[:10])
    await writer.drain()
    # A response on a second connection proves that the first request has arrived.
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        assert (await client.get("/health")).status_code == 200

    process.send_signal(signal.SIGTERM)
    await until(lambda: not answers(port))
    writer.write(BODY[10:])
    answer = await reader.readuntil(b"\r\n")
    writer.close()

    assert answer == b"HTTP/1.1 200 OK\r\n"
    assert await asyncio.wait_for(process.wait(), 20) == 0


async def test_a_request_that_never_ends_does_not_keep_the_process_alive(start, tenant, token):
    process, port = await start(OSLIRA_DRAIN_SECONDS="1", OSLIRA_CLIENT_DEADLINE_SECONDS="60")
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(grant_request(tenant.account_id, token(is_operator=True)) + BODY[:10])
    await writer.drain()

    process.send_signal(signal.SIGTERM)

    assert await asyncio.wait_for(process.wait(), 20) == 0
    writer.close()


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET /hea",
        b"GET /health HTTP/1.1\r\nHost: test\r\n",
        b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n",
    ],
    ids=["says nothing", "half a line", "half a head", "idle after its answer"],
)
async def test_connection_of_a_slow_client_is_closed(impatient_port, beginning):
    reader, writer = await asyncio.open_connection("127.0.0.1", impatient_port)

    writer.write(beginning)

    async with asyncio.timeout(15):
        await reader.read()  # returns when the server closes
    assert reader.at_eof()
    writer.close()


async def test_a_slow_body_is_cut_off_with_a_reason(impatient_port, tenant, token):
    reader, writer = await asyncio.open_connection("127.0.0.1", impatient_port)

    writer.write(grant_request(tenant.account_id, token(is_operator=True)) + BODY[:10])

    async with asyncio.timeout(15):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"body_too_slow" in answer
    writer.close()


async def test_occupied_port_is_reported_without_a_traceback(impatient_port):
    second = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "core.cli.main", "serve", "--port", str(impatient_port)),
        env={**os.environ, "PYTHONPATH": str(PROJECT / "src")},
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await second.communicate()

    assert second.returncode == 1
    assert b"Try --port" in errors
    assert b"Traceback" not in errors


async def test_of_two_servers_started_at_once_on_one_port_only_one_serves(addresses, place):
    port = free_port()
    async with servers(addresses, place) as start:
        (first, _), (second, _) = await asyncio.gather(start(port=port), start(port=port))
        await until(lambda: None in {first.returncode, second.returncode} != {None}, timeout_s=60)
        loser = first if second.returncode is None else second
        errors = await loser.stderr.read()

        assert loser.returncode == 1
        assert f"Cannot listen on 127.0.0.1:{port}".encode() in errors
        assert b"Traceback" not in errors
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            assert (await client.get("/health")).status_code == 200
