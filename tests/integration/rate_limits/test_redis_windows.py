"""Rate windows in Redis: scripts, expiry and outages."""

import asyncio
import contextlib

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from infrastructure.rate_limits import redis_client
from infrastructure.rate_limits.redis_client import PREFIX
from infrastructure.rate_limits.redis_windows import RETRY_S, RedisUnavailable, RedisWindows
from tests.support import free_port
from tests.support.redis_server import address_of, redis_server
from tests.support.window_stores import limit_of

pytestmark = pytest.mark.needs_program("redis")


@pytest.fixture
async def port(tmp_path):
    async with redis_server(tmp_path) as port:
        yield port


@pytest.fixture
async def client(port):
    client = Redis.from_url(address_of(port), decode_responses=True)
    yield client
    await client.aclose()


class Outing:
    """Windows with a changeable address and clock."""

    def __init__(self, port):
        self.address = address_of(port)
        self.now_s = 1_000.0
        self.windows = RedisWindows(self.read_address, now_s=lambda: self.now_s)

    async def read_address(self):
        return self.address

    async def find_out(self):
        """Passes the retry interval and sends one request, which reconnects if Redis is available."""
        self.now_s += RETRY_S
        await self.windows.take("somebody else", limit_of(5))

    async def granted(self, requests_max, requests, window_s=60):
        limit = limit_of(requests_max, window_s)
        verdicts = await asyncio.gather(*(self.windows.take("k", limit) for _ in range(requests)))
        return sum(verdict.is_granted for verdict in verdicts)


@pytest.fixture
async def outing():
    """Returns a function that creates windows for a port."""
    outings = []

    def make(port):
        outings.append(Outing(port))
        return outings[-1]

    yield make
    for outing in outings:
        await outing.windows.close()


@pytest.fixture
def logs():
    with capture_logs() as logs:
        yield logs


async def test_key_expires_soon_after_the_window(outing, port, client):
    await outing(port).granted(5, 3)

    assert 60_000 < await client.pttl(PREFIX + "k") <= 62_000


async def test_old_slots_are_removed(outing, port, client):
    one = outing(port)
    await one.granted(500, 1)
    (slot,) = await client.hkeys(PREFIX + "k")
    await client.hset(PREFIX + "k", mapping={str(int(slot) - 100 - number): 1 for number in range(300)})

    await one.granted(500, 1)

    assert await client.hlen(PREFIX + "k") <= 2


async def test_flushed_scripts_are_loaded_again(outing, port, client):
    one = outing(port)
    await one.granted(100, 5)
    await client.script_flush()

    assert await one.granted(100, 20) == 20
    assert sum(map(int, await client.hvals(PREFIX + "k"))) == 25


async def test_concurrent_requests_share_round_trips(outing, port, client):
    one = outing(port)
    await one.windows.state()
    before = (await client.info("stats"))["total_reads_processed"]

    await asyncio.gather(*(one.windows.take(f"key {number}", limit_of(5)) for number in range(60)))

    # Two requests are sent alone at once and the others together; the info command is one more.
    assert (await client.info("stats"))["total_reads_processed"] - before <= 8


async def test_outage_falls_back_to_memory_and_is_logged_once(outing, logs):
    one = outing(free_port())

    assert await one.granted(5, 20) == 5
    assert await one.granted(5, 20) == 0
    assert [line["event"] for line in logs] == ["redis_away"]
    assert "canary" not in str(logs)


async def test_hanging_server_falls_back_to_memory(outing, monkeypatch):
    monkeypatch.setattr(redis_client, "TIMEOUT_S", 0.05)
    connections = set()
    server = await asyncio.start_server(lambda *pair: connections.add(pair), "127.0.0.1", 0)
    one = outing(server.sockets[0].getsockname()[1])

    assert await one.granted(5, 20) == 5
    assert len(connections) <= 2
    server.close()
    for _, writer in connections:
        writer.close()


async def test_server_is_not_retried_before_the_interval(outing, tmp_path):
    port = free_port()
    one = outing(port)
    await one.granted(5, 5)

    async with redis_server(tmp_path, port):
        assert await one.granted(5, 5) == 0
        await one.find_out()
        assert await one.granted(5, 9) == 5


async def test_recovered_server_is_used_again_and_logged(outing, tmp_path, logs):
    port = free_port()
    one = outing(port)
    async with redis_server(tmp_path, port):
        await one.granted(5, 5)
    await one.granted(5, 5)

    async with redis_server(tmp_path, port):
        await one.find_out()
        assert await one.granted(5, 9) == 5

    assert [line["event"] for line in logs] == ["redis_away", "redis_back"]


async def test_every_outage_is_logged(outing, tmp_path, logs):
    port = free_port()
    one = outing(port)
    for _ in range(2):
        await one.granted(5, 5)
        async with redis_server(tmp_path, port):
            assert await one.windows.state() == "Redis"

    assert [line["event"] for line in logs] == ["redis_away", "redis_back"] * 2


async def test_restart_is_not_an_outage(outing, tmp_path, logs):
    port = free_port()
    one = outing(port)
    async with redis_server(tmp_path, port):
        await one.granted(5, 5)

    async with redis_server(tmp_path, port):
        assert await one.granted(5, 9) == 5
    assert logs == []


async def test_rotated_password_is_used(outing, port, client):
    one = outing(port)
    await one.granted(5, 3)
    await client.config_set("requirepass", "another")
    await client.client_kill_filter(_type="normal", skipme=True)
    assert await one.granted(5, 1) == 1  # counted in memory

    one.address = one.address.replace("canary", "another")
    await one.find_out()

    assert await one.granted(5, 9) == 2


@pytest.mark.parametrize(
    "address",
    ["redis://127.0.0.1:{port}/0", "redis://:wrong@127.0.0.1:{port}/0", "redis://h:1/0?socket_timeout=x"],
    ids=["no password", "a wrong one", "no address at all"],
)
async def test_invalid_address_falls_back_to_memory(outing, port, address):
    one = outing(port)
    one.address = address.format(port=port)

    assert await one.granted(5, 9) == 5


async def test_state_names_only_the_kind_of_failure(outing):
    one = outing(free_port())

    with pytest.raises(RedisUnavailable) as away:
        await one.windows.state()

    assert str(away.value) == "Redis does not answer (ConnectionError): each process counts for itself"


async def test_cancelled_request_does_not_affect_the_next(outing, port):
    one = outing(port)
    asking = asyncio.create_task(one.windows.take("k", limit_of(5)))
    await asyncio.sleep(0)
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking

    assert await one.granted(10, 5) == 5
