"""Rate limit stores by setting, and their health checks."""

import asyncpg
import pytest

from tests.support.calls import BALANCE, statuses


@pytest.fixture
def binding(operator):
    """Reads the readiness status and its rate limit binding."""

    async def read(client):
        answer = (await client.get("/health/ready", headers=operator)).json()
        return answer["status"], answer["bindings"]["rate_limits"]

    return read


@pytest.fixture
async def rows(limited_addresses):
    """Counts the windows in the database."""
    connection = await asyncpg.connect(limited_addresses.owner)
    yield lambda: connection.fetchval("select count(*) from traffic.rate_windows")
    await connection.close()


async def test_default_store_is_the_database(open_client, bearer, rows, binding):
    client = await open_client()

    await client.get(BALANCE, headers=bearer())

    assert await rows() == 1
    assert await binding(client) == ("ready", {"ok": True, "mode": "real", "detail": "PostgreSQL"})


async def test_memory_store_does_not_use_the_database(open_client, limit, bearer, rows, binding):
    await limit("read", 2)
    client = await open_client(OSLIRA_RATE_LIMIT_STORE="memory")

    assert await statuses(client, 3, headers=bearer()) == [200, 200, 429]
    assert await rows() == 0
    assert await binding(client) == ("ready", {"ok": True, "mode": "local", "detail": "this process alone"})
