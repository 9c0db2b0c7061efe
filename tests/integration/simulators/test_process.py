"""The process of the simulators."""

import asyncio
import os
import signal
import sys

import httpx
import pytest

from simulators.supervisor import Simulators, SimulatorsNotStarted
from tests.support import answers, until
from tests.support.simulated import AUDIENCE, ISSUER


def port_of(address):
    return int(address.rpartition(":")[2])


async def test_concurrent_callers_share_one_process_and_a_dead_one_is_replaced(tmp_path):
    simulators = Simulators((str(tmp_path), ISSUER, AUDIENCE))
    first = set(await asyncio.gather(*(simulators.address() for _ in range(8))))
    process = simulators._process  # noqa: SLF001
    process.kill()
    await process.wait()

    second = await simulators.address()
    answered = answers(port_of(second))
    await simulators.close()

    assert len(first) == 1
    assert answered
    assert not answers(port_of(second))


async def test_process_that_cannot_start_raises_an_error_at_once(tmp_path):
    simulators = Simulators((str(tmp_path),))

    with pytest.raises(SimulatorsNotStarted):
        await simulators.address()
    await simulators.close()


PARENT = """
import asyncio, sys
from simulators.supervisor import Simulators

async def main():
    print(await Simulators(sys.argv[1:]).address(), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_process_ends_when_its_parent_is_killed(tmp_path):
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(tmp_path), ISSUER, AUDIENCE), stdout=asyncio.subprocess.PIPE
    )
    lines = parent.stdout
    address = ""
    while not address.startswith("http"):
        address = (await lines.readline()).decode().strip()
    port = port_of(address)
    answered = answers(port)

    os.kill(parent.pid, signal.SIGKILL)
    await parent.communicate()

    assert answered
    await until(lambda: not answers(port))


async def test_stop_does_not_wait_for_a_pending_response(tmp_path):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "simulators.process", str(tmp_path), ISSUER, AUDIENCE),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    address = (await process.stdout.readline()).decode().strip()
    async with httpx.AsyncClient(base_url=address) as http:
        await http.post("/_faults", json={"route": "/openai", "kind": "timeout"})
        hanging = asyncio.create_task(http.get("/openai/v1/models", timeout=60))
        await until(lambda: has_arrived(http))
        process.send_signal(signal.SIGTERM)

        async with asyncio.timeout(20):
            assert await process.wait() == 0
        await asyncio.wait({hanging})


async def test_many_idle_connections_do_not_block_a_request(simulators):
    host, port = "127.0.0.1", port_of(simulators.address)
    idle = [await asyncio.open_connection(host, port) for _ in range(200)]

    async with httpx.AsyncClient(base_url=simulators.address, timeout=10) as http:
        answer = await http.get("/_state")

    assert answer.status_code == 200
    for _, writer in idle:
        writer.close()
        await writer.wait_closed()


async def has_arrived(http):
    return "GET /openai/v1/models" in (await http.get("/_state")).json()["requests"]
