"""Where requests are counted, by setting, and what the health page says of it."""

import asyncpg
import pytest

from tests.core.calls import BALANCE, statuses
from tests.infrastructure.redis_server import address_of, redis_server
from tests.support import free_port

needs_redis = pytest.mark.needs_program("redis")


@pytest.fixture
def binding(operator):
    """A function: the readiness, and what it says of the rate limits."""

    async def read(client):
        answer = (await client.get("/health/ready", headers=operator)).json()
        return answer["status"], answer["bindings"]["rate_limits"]

    return read


@pytest.fixture
async def rows(limited_addresses):
    """A function: how many windows the database keeps."""
    connection = await asyncpg.connect(limited_addresses.owner)
    yield lambda: connection.fetchval("select count(*) from traffic.rate_windows")
    await connection.close()


async def test_by_default_the_database_counts(open_client, bearer, rows, binding):
    client = await open_client()

    await client.get(BALANCE, headers=bearer())

    assert await rows() == 1
    assert await binding(client) == ("ready", {"ok": True, "mode": "real", "detail": "PostgreSQL"})


async def test_in_memory_the_database_is_spared(open_client, limit, bearer, rows, binding):
    await limit("read", 2)
    client = await open_client(OSLIRA_RATE_LIMIT_STORE="memory")

    assert await statuses(client, 3, headers=bearer()) == [200, 200, 429]
    assert await rows() == 0
    assert await binding(client) == ("ready", {"ok": True, "mode": "local", "detail": "this process alone"})


@needs_redis
async def test_in_redis_the_database_is_spared(open_client, limit, bearer, rows, tmp_path, binding):
    await limit("read", 2)
    async with redis_server(tmp_path) as port:
        store = address_of(port).replace("redis://", "valkey://")
        client = await open_client(OSLIRA_RATE_LIMIT_STORE=store)

        assert await statuses(client, 3, headers=bearer()) == [200, 200, 429]
        assert await rows() == 0
        assert await binding(client) == ("ready", {"ok": True, "mode": "real", "detail": "Redis"})


async def test_while_redis_is_away_calls_are_answered_counted_and_told_as_degraded(
    open_client, limit, bearer, logs, binding
):
    await limit("read", 2)
    client = await open_client(OSLIRA_RATE_LIMIT_STORE=address_of(free_port()))

    assert await statuses(client, 3, headers=bearer()) == [200, 200, 429]
    status, found = await binding(client)
    assert (status, found["ok"], found["mode"]) == ("degraded", False, "real")
    assert found["detail"] == "Redis does not answer (ConnectionError): each process counts for itself"
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["redis_away"]
    assert "canary" not in f"{found} {logs}"
