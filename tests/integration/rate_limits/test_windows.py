"""Common behaviour of the rate windows in PostgreSQL and memory."""

import asyncio
import random
import uuid

import asyncpg
import pytest

from tests.conftest import copy_of
from tests.support import dual_client
from tests.support.window_stores import (
    SLOT_S,
    WINDOW_S,
    MemoryArena,
    PostgresArena,
    limit_of,
    within_a_slot,
)


@pytest.fixture(scope="module")
async def postgres_arena(cluster, template):
    async with copy_of(cluster, template) as addresses, dual_client(addresses) as database:
        owner = await asyncpg.connect(addresses.owner)
        yield PostgresArena(database, owner)
        await owner.close()


@pytest.fixture
def memory_arena():
    return MemoryArena()


@pytest.fixture(autouse=True)
async def no_slot_ends():
    await within_a_slot()


@pytest.fixture(params=["memory", "postgres"])
def arena(request):
    return request.getfixturevalue(f"{request.param}_arena")


@pytest.fixture
def key():
    return f"read:user:{uuid.uuid4()}"


async def granted(arena, key, limit, requests, *, windows=None):
    """The number of granted requests out of ``requests`` concurrent ones."""
    windows = windows or arena.windows
    verdicts = await asyncio.gather(*(windows.take(key, limit) for _ in range(requests)))
    return sum(verdict.is_granted for verdict in verdicts)


@pytest.mark.parametrize(("requests_max", "requests"), [(1, 50), (7, 200), (200, 200), (201, 200)])
async def test_concurrent_requests_are_granted_exactly_up_to_the_limit(arena, key, requests_max, requests):
    assert await granted(arena, key, limit_of(requests_max), requests) == min(requests_max, requests)


async def test_each_grant_decrements_the_remaining_requests(arena, key):
    verdicts = [await arena.windows.take(key, limit_of(4)) for _ in range(6)]

    assert [verdict.remaining for verdict in verdicts] == [3, 2, 1, 0, 0, 0]
    assert [verdict.is_granted for verdict in verdicts] == [True] * 4 + [False] * 2


async def test_requests_of_one_batch_have_different_remainders(arena, key):
    limit = limit_of(40)

    verdicts = await asyncio.gather(*(arena.windows.take(key, limit) for _ in range(40)))

    assert sorted(verdict.remaining for verdict in verdicts) == list(range(40))


async def test_keys_have_separate_limits(arena, key):
    await granted(arena, key, limit_of(3), 9)

    assert await granted(arena, key + "0", limit_of(3), 9) == 3


async def test_grant_counts_for_exactly_one_window(arena, key):
    await granted(arena, key, limit_of(5), 5)

    await arena.pass_slots(60)
    assert await granted(arena, key, limit_of(5), 5) == 0
    await arena.pass_slots(1)
    assert await granted(arena, key, limit_of(5), 9) == 5


async def test_sliding_window_has_no_boundary_bursts(arena, key):
    for _ in range(6):  # at every possible boundary of a fixed window
        assert await granted(arena, key, limit_of(6), 1) == 1
        await arena.pass_slots(10)

    assert await granted(arena, key, limit_of(6), 9) == 0
    await arena.pass_slots(1)
    assert await granted(arena, key, limit_of(6), 9) == 1


async def test_rejected_request_does_not_count(arena, key):
    await granted(arena, key, limit_of(3), 3)
    await arena.pass_slots(30)
    await granted(arena, key, limit_of(3), 50)
    await arena.pass_slots(31)

    assert await granted(arena, key, limit_of(3), 9) == 3


async def test_full_limit_is_available_after_a_long_pause(arena, key):
    await granted(arena, key, limit_of(3), 3)
    await arena.pass_slots(100_000)

    assert await granted(arena, key, limit_of(3), 9) == 3


async def test_reset_s_is_the_expiry_of_the_oldest_grant(arena, key):
    await granted(arena, key, limit_of(2), 1)
    await arena.pass_slots(40)
    await granted(arena, key, limit_of(2), 1)

    refused = await arena.windows.take(key, limit_of(2))

    assert 20 * SLOT_S < refused.reset_s <= 21 * SLOT_S


async def test_reset_s_is_at_most_the_window_and_one_slot(arena, key):
    await granted(arena, key, limit_of(1), 1)

    refused = await arena.windows.take(key, limit_of(1))

    assert WINDOW_S < refused.reset_s <= WINDOW_S * 61 / 60


async def test_smaller_limit_holds_beside_a_larger_one(arena, key):
    """For example a user with two accounts on different plans."""
    small, large = limit_of(3), limit_of(8)

    small_granted, large_granted = await asyncio.gather(
        granted(arena, key, small, 20), granted(arena, key, large, 20)
    )

    assert small_granted <= 3
    assert small_granted + large_granted <= 8


async def test_lowered_limit_applies_at_once(arena, key):
    await granted(arena, key, limit_of(8), 6)

    assert await granted(arena, key, limit_of(4), 9) == 0
    assert await granted(arena, key, limit_of(8), 9) == 2


@pytest.mark.parametrize("seed", range(5))
async def test_postgres_grants_exactly_what_memory_grants(postgres_arena, memory_arena, key, seed):
    random_history = random.Random(seed)
    limit = limit_of(random_history.randint(1, 12))

    for _ in range(60):
        requests = random_history.randint(1, 5)
        assert await granted(postgres_arena, key, limit, requests) == await granted(
            memory_arena, key, limit, requests
        )
        slots = random_history.choice([0, 1, 7, 30, 59, 60, 61, 62])
        await postgres_arena.pass_slots(slots)
        await memory_arena.pass_slots(slots)


async def test_small_clock_step_back_keeps_the_grants(postgres_arena, key):
    await granted(postgres_arena, key, limit_of(3), 3)
    await postgres_arena.pass_slots(-10)

    assert await granted(postgres_arena, key, limit_of(3), 9) == 0


async def test_large_clock_step_back_discards_future_grants(postgres_arena, key):
    await granted(postgres_arena, key, limit_of(3), 3)
    await postgres_arena.pass_slots(-1_000)

    assert await granted(postgres_arena, key, limit_of(3), 9) == 3
    assert await granted(postgres_arena, key, limit_of(3), 9) == 0


async def test_processes_share_one_count(postgres_arena, key):
    second = postgres_arena.another()

    counts = await asyncio.gather(
        granted(postgres_arena, key, limit_of(30), 40),
        granted(postgres_arena, key, limit_of(30), 40, windows=second),
    )
    await second.close()

    assert sum(counts) == 30
