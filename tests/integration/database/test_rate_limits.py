"""Rate limits in the database."""

import asyncio

import pytest

from infrastructure.database.clients import DatabaseUnavailable
from infrastructure.database.http.rate_limits import LIMITS_REMEMBERED_FOR_S, PostgresLimits


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
