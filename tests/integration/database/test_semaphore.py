"""Distributed semaphore under load, cancellations, killed processes and database outages."""

import asyncio
import random
import sys
import uuid
from contextlib import AsyncExitStack, asynccontextmanager

import asyncpg
import pytest

from infrastructure.database.clients import DatabaseUnavailable
from infrastructure.database.semaphore import PostgresSemaphore
from infrastructure.resilience.semaphore import SlotLost
from shared.errors import Unavailable
from tests.integration.database.pgbouncer import transaction_pooler
from tests.support import dual_client, until

HOLDERS = "select holder from traffic.leases where name = $1 and expires_at > now()"


class FlakyDatabase:
    """The real database, which can be made unavailable and counts its statements."""

    def __init__(self, database):
        self._session = database.admin("test")
        self.is_away = False
        self.asked = []

    def admin(self, _reason):
        return self

    async def fetch(self, statement, *args):
        self.asked.append(statement.split()[0])
        if self.is_away:
            raise DatabaseUnavailable
        return await self._session.fetch(statement, *args)


def quick(low, _high):
    return low


@pytest.fixture
def name():
    return uuid.uuid4().hex


@pytest.fixture
def flaky(database):
    return FlakyDatabase(database)


@asynccontextmanager
async def slots_on(database, **options):
    slots = PostgresSemaphore(database, jitter=quick, **options)
    yield slots


@pytest.fixture
async def slots(flaky):
    async with slots_on(flaky) as slots:
        yield slots


@pytest.fixture
async def held(owner, name):
    async def held():
        return len(await owner.fetch(HOLDERS, name))

    return held


async def hold(slots, name, limit, entered=None):
    async with slots.acquire(name, limit):
        if entered is not None:
            entered.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def holding(slots, name, limit):
    """Returns a task that holds a slot."""
    entered = asyncio.Event()
    task = asyncio.create_task(hold(slots, name, limit, entered))
    await entered.wait()
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


INSIDE = """
create table if not exists inside (name text, peak bigint);
create or replace function step_in(name text) returns bigint language plpgsql as $$
begin
    perform pg_advisory_xact_lock(7);
    insert into inside values (step_in.name);
    return (select count(*) from inside as i where i.name = step_in.name);
end $$
"""


async def hammer(slots, name, limit, connection, lock, times):
    """Returns the highest number of concurrent holders, as the database observed it."""
    peak = 0
    for _ in range(times):
        async with slots.acquire(name, limit):
            async with lock:
                peak = max(peak, await connection.fetchval("select step_in($1)", name))
            await asyncio.sleep(random.uniform(0, 0.01))
            async with lock:
                await connection.execute(
                    "delete from inside where ctid in (select ctid from inside where name = $1 limit 1)", name
                )
    return peak


@pytest.mark.parametrize(
    "is_pooled", [False, pytest.param(True, marks=pytest.mark.needs_program("pgbouncer"))]
)
async def test_three_busy_clients_never_exceed_the_limit(spoilable_addresses, name, tmp_path, is_pooled):
    connection, lock, limit = await asyncpg.connect(spoilable_addresses.owner), asyncio.Lock(), 4
    await connection.execute(INSIDE)
    async with AsyncExitStack() as stack:
        addresses = spoilable_addresses
        if is_pooled:
            addresses = await stack.enter_async_context(transaction_pooler(addresses, tmp_path))
        databases = [
            await stack.enter_async_context(dual_client(addresses, statement_cache=not is_pooled))
            for _ in range(3)
        ]
        clients = [await stack.enter_async_context(slots_on(database)) for database in databases]
        peaks = await asyncio.gather(
            *(hammer(slots, name, limit, connection, lock, 5) for slots in clients for _ in range(6))
        )

    left = await connection.fetch(HOLDERS, name)
    await connection.close()

    assert max(peaks) == limit
    assert left == []


async def test_cancellation_at_any_moment_loses_no_slot(slots, name, held):
    async def visit():
        async with slots.acquire(name, 3):
            await asyncio.sleep(random.uniform(0, 0.02))

    visitors = [asyncio.create_task(visit()) for _ in range(60)]
    while not all(visitor.done() for visitor in visitors):
        await asyncio.sleep(0.002)
        random.choice(visitors).cancel()
    ended = await asyncio.gather(*visitors, return_exceptions=True)

    assert {type(end) for end in ended} <= {asyncio.CancelledError, type(None)}
    await until(lambda: is_count(held, 0))
    async with slots.acquire(name, 3), slots.acquire(name, 3), slots.acquire(name, 3):
        assert await held() == 3


class Spoilsport(FlakyDatabase):
    """Cancels a task while its slot is being granted."""

    victim = None
    is_late = False  # the slot has been granted, and the task has not resumed yet

    async def fetch(self, statement, *args):
        rows = await super().fetch(statement, *args)
        if self.victim is not None and "traffic.acquire_leases(" in statement:
            asyncio.get_running_loop().call_soon(self.victim.cancel)
            if not self.is_late:
                await asyncio.sleep(0)
        return rows


@pytest.mark.parametrize("is_late", [False, True])
async def test_task_cancelled_while_it_is_served_leaves_no_slot_behind(database, name, held, is_late):
    spoilsport = Spoilsport(database)
    spoilsport.is_late = is_late
    async with slots_on(spoilsport) as slots:
        spoilsport.victim = asyncio.create_task(hold(slots, name, 1))
        await asyncio.gather(spoilsport.victim, return_exceptions=True)

        assert spoilsport.victim.cancelled()
        await until(lambda: is_count(held, 0))


async def is_count(held, count):
    return await held() == count


async def test_waiters_of_a_process_are_served_in_order(slots, name):
    served = []

    async def visit(number):
        async with slots.acquire(name, 2):
            served.append(number)

    await asyncio.gather(*(visit(number) for number in range(12)))

    assert served == list(range(12))


async def test_waiters_share_one_query_and_no_waiters_send_none(slots, flaky, name):
    async with holding(slots, name, 1):
        waiting = [asyncio.create_task(hold(slots, name, 1)) for _ in range(50)]
        flaky.asked.clear()
        await until(lambda: flaky.asked)
        await asyncio.sleep(0.06)
        assert len(flaky.asked) <= 3
        for waiter in waiting:
            waiter.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0.06)
        flaky.asked.clear()
        await asyncio.sleep(0.12)

        assert flaky.asked == []


async def test_a_changed_limit_takes_effect(slots, name, held):
    async with holding(slots, name, 2), holding(slots, name, 3), holding(slots, name, 3) as third:
        assert await held() == 3
        waiting = [asyncio.create_task(hold(slots, name, 2))]
        third.cancel()
        await asyncio.gather(third, return_exceptions=True)
        await asyncio.sleep(0.12)
        assert await held() == 2  # the new limit: the waiter continues to wait

        waiting.append(asyncio.create_task(hold(slots, name, 4)))
        await until(lambda: is_count(held, 4))
        for waiter in waiting:
            waiter.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_held_slot_is_renewed(database, name, held):
    async with slots_on(database, lifetime_s=0.6) as slots, holding(slots, name, 1) as holder:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5), slots.acquire(name, 1):
                pass

        assert not holder.done()
        assert await held() == 1


async def test_slot_of_a_killed_process_expires(addresses, slots, name, held):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.database.killed_holder", addresses.admin, name, "1"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert (await process.stdout.readline()).decode().strip() == "held"
    assert await held() == 1
    process.kill()
    await process.communicate()

    async with asyncio.timeout(5), slots.acquire(name, 1):
        assert await held() == 1


async def test_holder_of_a_lost_slot_is_cancelled_with_slot_lost(database, owner, name):
    async with slots_on(database, lifetime_s=0.3) as slots:
        async with holding(slots, name, 1) as zombie:
            await owner.execute("delete from traffic.leases where name = $1", name)

            await asyncio.wait({zombie}, timeout=5)

        with pytest.raises(SlotLost, match=name):
            await zombie


async def test_a_slot_that_cannot_be_renewed_is_lost_before_it_expires(flaky, owner, name):
    async with slots_on(flaky, lifetime_s=1.2) as slots, holding(slots, name, 1) as zombie:
        flaky.is_away = True
        await asyncio.wait({zombie}, timeout=5)
        still_held = await owner.fetch(HOLDERS, name)

        assert isinstance(zombie.exception(), SlotLost)
        assert len(still_held) == 1


async def test_short_outage_of_the_database_loses_no_slot(flaky, name, held):
    async with slots_on(flaky, lifetime_s=0.6) as slots, holding(slots, name, 1) as holder:
        flaky.asked.clear()
        flaky.is_away = True
        await until(lambda: flaky.asked)
        flaky.is_away = False
        await asyncio.sleep(0.7)

        assert not holder.done()
        assert await held() == 1


async def test_outage_grants_no_slot_and_all_waiters_are_served_afterwards(slots, flaky, name):
    flaky.is_away = True
    refused = await asyncio.gather(*(hold(slots, name, 5) for _ in range(3)), return_exceptions=True)
    flaky.is_away = False

    async with slots.acquire(name, 5):
        assert all(isinstance(refusal, Unavailable) for refusal in refused)


async def test_unresponsive_database_counts_as_unavailable(flaky, name):
    async def silence(*_args):
        await asyncio.Event().wait()

    flaky.fetch = silence
    async with slots_on(flaky, query_s=0.05) as slots:
        with pytest.raises(Unavailable):
            async with slots.acquire(name, 1):
                pass


async def test_cancellation_by_another_task_propagates(slots, name, held):
    async with holding(slots, name, 1) as holder:
        holder.cancel()
        await asyncio.gather(holder, return_exceptions=True)

        assert holder.cancelled()
        assert await held() == 0


async def test_spare_slot_is_granted_at_once_or_not_at_all(database, name, owner):
    async with slots_on(database) as slots, slots.acquire(name, 2):
        async with slots.acquire_now(name, 2) as is_held, slots.acquire_now(name, 2) as is_held_too:
            held = len(await owner.fetch(HOLDERS, name))

            assert (is_held, is_held_too, held) == (True, False, 2)
        assert len(await owner.fetch(HOLDERS, name)) == 1


async def test_spare_slot_is_not_granted_before_waiters(flaky, name):
    async with slots_on(flaky) as slots:
        async with slots.acquire(name, 1):
            waiting = asyncio.create_task(_held_for_a_moment(slots, name))
            await until(lambda: len(flaky.asked) > 1)

            async with slots.acquire_now(name, 2) as is_held:
                assert not is_held
        await waiting


async def _held_for_a_moment(slots, name):
    async with slots.acquire(name, 1):
        pass


async def test_outage_grants_no_spare_slot(flaky, name):
    flaky.is_away = True

    async with slots_on(flaky) as slots, slots.acquire_now(name, 2) as is_held:
        assert not is_held
