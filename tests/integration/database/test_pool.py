import asyncio

import asyncpg
import pytest

import infrastructure.database.pool as module
from infrastructure.database.pool import Pool, open_pool


@pytest.fixture
async def pool(addresses):
    async def url():
        return addresses.user

    async with open_pool(url, size_max=2, statement_cache=True) as pool:
        yield pool


async def test_a_returned_connection_is_lent_again(pool):
    first = await pool.acquire()
    pool.release(first)

    assert await pool.acquire() is first


async def test_open_connections_are_limited_and_waiters_are_served_in_order(pool):
    first, second = await pool.acquire(), await pool.acquire()
    waiting = [asyncio.create_task(pool.acquire()) for _ in range(2)]
    await asyncio.sleep(0)

    pool.release(second)
    pool.release(first)

    assert await asyncio.gather(*waiting) == [second, first]


async def test_waiter_times_out_without_losing_a_connection(pool, monkeypatch):
    monkeypatch.setattr(module, "ACQUIRE_TIMEOUT_S", 0.01)
    first, second = await pool.acquire(), await pool.acquire()

    with pytest.raises(TimeoutError):
        await pool.acquire()

    pool.release(first)
    pool.release(second)
    assert {await pool.acquire(), await pool.acquire()} == {first, second}


async def test_a_connection_left_in_a_transaction_is_never_lent_again(pool):
    connection = await pool.acquire()
    await connection.execute("begin")
    pool.release(connection)

    assert connection.is_closed()
    assert await pool.acquire() is not connection


async def test_a_dead_connection_makes_room_for_a_waiter(pool):
    first, _ = await pool.acquire(), await pool.acquire()
    waiting = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)

    first.terminate()
    pool.release(first)

    assert await (await waiting).fetchval("select 1") == 1


async def test_waiter_cancelled_while_served_passes_the_connection_on(pool):
    first, _ = await pool.acquire(), await pool.acquire()
    impatient, patient = (asyncio.create_task(pool.acquire()) for _ in range(2))
    await asyncio.sleep(0)

    pool.release(first)
    impatient.cancel()

    assert await patient is first


async def test_failed_connection_attempt_frees_its_slot(addresses):
    answers = iter(["postgresql://unknown_user@/none?host=/nowhere", addresses.user])

    async def url():
        return next(answers)

    pool = Pool(url, size_max=1, statement_cache=True)
    with pytest.raises(OSError):  # noqa: PT011  the system's error for a missing folder
        await pool.acquire()

    connection = await pool.acquire()

    assert await connection.fetchval("select 1") == 1
    await pool.close()


async def test_connection_lent_for_too_long_is_closed(pool, monkeypatch):
    monkeypatch.setattr(module, "LENT_S_MAX", 0.0)
    monkeypatch.setattr(module, "LOOK_INTERVAL_S", 0.01)
    connection = await pool.acquire()

    watch = asyncio.create_task(pool.end_the_stuck())

    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await connection.fetch("select pg_sleep(30)")
    watch.cancel()
