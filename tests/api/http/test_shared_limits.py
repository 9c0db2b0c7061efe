"""Rate limits shared by two API processes."""

import asyncio
import itertools
from contextlib import AsyncExitStack

import httpx
import pytest

from tests.conftest import copy_of
from tests.support.application import servers, set_limit
from tests.support.calls import BALANCE

REQUESTS = 240
TASKS = 24
READS_MAX, ANONYMOUS_MAX = 50, 30


@pytest.fixture(scope="module")
async def two_processes(cluster, template, place):
    """Addresses of two API processes. Each test uses a different principal, so that they are counted
    separately.
    """
    async with copy_of(cluster, template) as addresses, servers(addresses, place) as start:
        await set_limit(addresses, "read", READS_MAX)
        await set_limit(addresses, "public", ANONYMOUS_MAX)
        ports = [(await start())[1] for _ in range(2)]
        yield [f"http://127.0.0.1:{port}" for port in ports]


async def burst(addresses, headers):
    """Number of responses by status. The tasks alternate between the processes."""
    numbers = itertools.count()
    statuses = []

    async def work(client):
        while (number := next(numbers)) < REQUESTS:
            statuses.append((await client.get(BALANCE, headers=headers(number))).status_code)

    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(base_url=address, timeout=30))
            for address in addresses
        ]
        await asyncio.gather(*(work(clients[task % len(clients)]) for task in range(TASKS)))
    return {status: statuses.count(status) for status in set(statuses)}


async def test_a_burst_on_two_processes_is_granted_exactly_the_limit(two_processes, bearer):
    who = bearer()

    found = await burst(two_processes, lambda _: who)

    assert found == {200: READS_MAX, 429: REQUESTS - READS_MAX}


async def test_rotating_addresses_do_not_help_an_anonymous_burst(two_processes):
    found = await burst(
        two_processes, lambda number: {"X-Forwarded-For": f"10.0.{number}.1, 10.1.1.{number}"}
    )

    assert found == {401: ANONYMOUS_MAX, 429: REQUESTS - ANONYMOUS_MAX}
