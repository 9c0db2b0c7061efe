"""Rate limits and request records in the database: applied limits, and the purge of old windows."""

import asyncio
import time
import uuid
from datetime import timedelta

import pytest

from infrastructure.database import expiry as sweeps
from infrastructure.database.clients import DatabaseUnavailable
from infrastructure.database.expiry import INTERVAL_S, ROWS_MAX
from infrastructure.database.http.idempotency_keys import PostgresIdempotencyKeys
from infrastructure.database.http.rate_limits import LIMITS_REMEMBERED_FOR_S, PostgresLimits, PostgresWindows
from infrastructure.database.http.request_log import PostgresRequestLog
from shared.middleware.rate_limits import Limit
from shared.middleware.request_log import RequestLogEntry

LIMIT = Limit("read", 5, 60)


class Clock:
    now_s = 1_000.0

    def __call__(self):
        return self.now_s


class FlakyDatabase:
    """The real database, which can be unavailable for statements that begin with a given word."""

    away_for = None
    asked = 0

    def __init__(self, database):
        self._session = database.admin("test")

    def admin(self, _reason):
        return self

    async def fetch(self, statement, *args):
        self.asked += 1
        if statement.split()[0] == self.away_for:
            raise DatabaseUnavailable
        return await self._session.fetch(statement, *args)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def flaky(database):
    return FlakyDatabase(database)


@pytest.fixture
async def change(owner):
    """A function: changes the free plan's limit of an otherwise unused class; reset at the end."""

    async def change(requests_max):
        await owner.execute(
            "update rate_limits set requests_max = $1 where plan = 'free' and route_class = 'refresh'",
            requests_max,
        )

    yield change
    await change(1_000_000_000)


async def test_changed_limit_applies_within_half_a_minute(database, clock, change):
    limits = PostgresLimits(database, now_s=clock)
    await change(7)
    assert (await limits.find("free", "refresh")).requests_max == 7

    await change(9)
    clock.now_s += LIMITS_REMEMBERED_FOR_S - 0.001
    assert (await limits.find("free", "refresh")).requests_max == 7
    clock.now_s += 0.001
    assert (await limits.find("free", "refresh")).requests_max == 9


async def test_plan_without_own_limits_has_those_of_the_free_plan(database):
    limits = PostgresLimits(database)

    assert await limits.find("pro", "public") is await limits.find("free", "public")
    assert await limits.find("pro", "read") is not await limits.find("free", "read")
    assert await limits.find("pro", "no such class") is await limits.find("free", "general")


async def test_first_callers_share_one_query(flaky):
    limits = PostgresLimits(flaky)

    found = await asyncio.gather(*(limits.find("free", "read") for _ in range(50)))

    assert None not in found
    assert flaky.asked == 1


async def test_unreadable_limits_raise_unavailable_instead_of_no_limit(flaky):
    limits = PostgresLimits(flaky)
    flaky.away_for = "select"

    for _ in range(3):
        with pytest.raises(DatabaseUnavailable):
            await limits.find("free", "read")

    flaky.away_for = None
    assert await limits.find("free", "read") is not None


async def test_cached_limits_apply_while_they_cannot_be_read_again(flaky, clock):
    limits = PostgresLimits(flaky, now_s=clock)
    known = await limits.find("free", "read")
    clock.now_s += LIMITS_REMEMBERED_FOR_S
    flaky.away_for = "select"

    assert await limits.find("free", "read") is known


@pytest.fixture
def count(owner):
    async def count(pattern):
        return await owner.fetchval("select count(*) from traffic.rate_windows where key like $1", pattern)

    return count


async def expired_rows(owner, number):
    await owner.execute(
        """
        insert into traffic.rate_windows (key, slot, taken, ring, expires_at)
        select 'expired ' || n, 0, 0, array_fill(0, array[61]), now() - interval '1 second'
        from generate_series(1, $1) as n
        """,
        number,
    )


@pytest.mark.parametrize("number", [3, ROWS_MAX * 2 + 1])
async def test_expired_windows_are_purged_in_the_background(database, owner, clock, count, number):
    windows, key = PostgresWindows(database, now_s=clock), f"kept {number}"
    await expired_rows(owner, number)

    await windows.take(key, LIMIT)
    await windows.close()
    assert await count("expired %") == number  # not yet

    clock.now_s += INTERVAL_S
    await windows.take(key, LIMIT)
    await windows.close()
    assert await count("expired %") == 0
    assert (await windows.take(key, LIMIT)).remaining == 2


async def test_failed_purge_affects_no_request_and_the_next_one_succeeds(flaky, owner, clock, count):
    windows = PostgresWindows(flaky, now_s=clock)
    await expired_rows(owner, 2)
    flaky.away_for = "delete"
    clock.now_s += INTERVAL_S
    assert (await windows.take("k", LIMIT)).is_granted
    await windows.close()
    assert await count("expired %") == 2

    flaky.away_for = None
    clock.now_s += INTERVAL_S
    await windows.take("k", LIMIT)
    await windows.close()

    assert await count("expired %") == 0


@pytest.mark.parametrize(
    ("table", "old", "young"),
    [("idempotency_keys", "25 hours 1 second", "24 hours"), ("requests", "90 days 1 second", "89 days")],
)
async def test_old_keys_and_points_are_purged_and_recent_ones_stay(
    database, owner, monkeypatch, table, old, young
):
    insert = {
        "idempotency_keys": """
            insert into traffic.idempotency_keys
                (id, fingerprint, attempt, effect_id, locked_until, created_at)
            select sha256(n::bytea), sha256('f'), gen_random_uuid(), gen_random_uuid(), now(),
                now() - n::interval
            from unnest($1::text[]) as n
        """,
        "requests": """
            insert into traffic.requests
            select now() - n::interval, 'GET', '/old', 200, 1, null, null, null, 'r'
            from unnest($1::text[]) as n
        """,
    }[table]
    column = "created_at" if table == "idempotency_keys" else "at"
    await owner.execute(f"delete from traffic.{table}")
    await owner.execute(insert, [old, young])
    monkeypatch.setattr(sweeps, "INTERVAL_S", 0.0)

    await (use_a_key if table == "idempotency_keys" else write_a_point)(database)

    ages = await owner.fetch(f"select now() - {column} as age from traffic.{table} order by 1 desc")
    assert len(ages) == 2
    assert ages[0]["age"] < timedelta(days=90)


async def use_a_key(database):
    attempts = PostgresIdempotencyKeys(database)
    attempt = uuid.uuid4()
    await attempts.begin(b"k" * 32, b"f" * 32, attempt)
    await attempts.finish(b"k" * 32, attempt, b"answer")
    await attempts.close()


async def write_a_point(database):
    log = PostgresRequestLog(database)
    log.record(RequestLogEntry(time.time(), "GET", "/new", 200, 1.0, None, None, None, "r"))
    await log.close()
