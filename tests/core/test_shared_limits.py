"""Two API processes grant together what one would, whichever store they share."""

import asyncio
import itertools

import httpx
import pytest

from tests.core.calls import BALANCE
from tests.infrastructure.redis_server import BINARY, address_of, redis_server

REQUESTS = 240
TASKS = 24
needs_redis = pytest.mark.skipif(BINARY is None, reason="neither Redis nor Valkey is installed")


@pytest.fixture(scope="module")
async def redis_address(tmp_path_factory):
    async with redis_server(tmp_path_factory.mktemp("redis")) as port:
        yield address_of(port)


@pytest.fixture(params=["postgres", pytest.param("redis", marks=needs_redis)])
def store(request):
    return request.param if request.param == "postgres" else request.getfixturevalue("redis_address")


@pytest.fixture
async def two_processes(start, spoilable_addresses, store):
    environ = {"DATABASE_URL": spoilable_addresses.owner, "OSLIRA_RATE_LIMIT_STORE": store}
    return [f"http://127.0.0.1:{port}" for _, port in [await start(**environ), await start(**environ)]]


async def burst(addresses, headers):
    """How many of the requests had which status. Tasks take turns between the processes."""
    numbers = itertools.count()
    statuses = []

    async def work(address):
        async with httpx.AsyncClient(base_url=address, timeout=30) as client:
            while (number := next(numbers)) < REQUESTS:
                statuses.append((await client.get(BALANCE, headers=headers(number))).status_code)

    await asyncio.gather(*(work(addresses[task % len(addresses)]) for task in range(TASKS)))
    return {status: statuses.count(status) for status in set(statuses)}


async def test_a_burst_on_two_processes_is_granted_exactly_the_limit(two_processes, limit, bearer):
    await limit("read", 50)
    who = bearer()

    found = await burst(two_processes, lambda _: who)

    assert found == {200: 50, 429: REQUESTS - 50}


async def test_rotating_addresses_do_not_help_an_anonymous_burst(two_processes, limit):
    await limit("public", 30)

    found = await burst(
        two_processes, lambda number: {"X-Forwarded-For": f"10.0.{number}.1, 10.1.1.{number}"}
    )

    assert found == {401: 30, 429: REQUESTS - 30}
