"""Dual client: no session sees other callers' rows, whatever its connection was used for before."""

import asyncio
import random
import uuid
from contextlib import suppress

import pytest

from core.wiring.bootstrap import DatabaseUrls
from infrastructure.database.clients import DatabaseUnavailable
from tests.conftest import make_tenant
from tests.integration.database.pgbouncer import transaction_pooler
from tests.support import claims_of, dual_client

MINE = "select account_id from public.memberships"
BALANCE = "select account_id from caller.credit_balance($1, null)"
LEFT_OVER = "select nullif(current_setting('request.jwt.claims', true), '') as claims"
BALANCES = "select account_id from caller.credit_balances($1, $2)"
many_calls = pytest.mark.parametrize("calls", [2_000, pytest.param(20_000, marks=pytest.mark.battery)])


@pytest.fixture(scope="module")
async def tenants(owner):
    return [await make_tenant(owner) for _ in range(20)]


@pytest.fixture
async def small_database(addresses):
    """Two connections per pool, so that callers constantly share connections."""
    async with dual_client(addresses, pool_size=2) as database:
        yield database


async def use(database, tenants, dice):
    """Uses the client once at random; returns the accounts it saw and the one it may see."""
    tenant = dice.choice(tenants)
    session = database.user(tenant.claims)
    match dice.randrange(5):
        case 0:
            rows = await session.call(BALANCE)
        case 1:
            rows = await database.call_for_many(BALANCES, [tenant.claims] * 2, [None] * 2)
        case 2:
            async with session.transaction():
                rows = await session.fetch(MINE)
        case 3:
            rows = await failing(session)
        case _:
            rows = await cancelled(session, after_turns=dice.randrange(16))
    return {row["account_id"] for row in rows}, tenant.account_id


async def failing(session):
    with pytest.raises(Exception, match="division"):
        async with session.transaction():
            await session.fetch("select 1/0")
    return []


async def cancelled(session, after_turns):
    async def slow():
        async with session.transaction():
            return await session.fetch("select account_id, pg_sleep(0.02) from public.memberships")

    task = asyncio.create_task(slow())
    for _ in range(after_turns):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        return await task
    return []


async def leaks(database, tenants, calls, seed):
    """Returns the accounts that were seen by other callers, over many calls from 32 clients."""
    dice = random.Random(seed)
    found = []

    async def client():
        for _ in range(calls // 32):
            seen, own = await use(database, tenants, dice)
            if seen - {own}:
                found.append((seen, own))

    await asyncio.gather(*(client() for _ in range(32)))
    return found


@many_calls
async def test_thousands_of_pooled_calls_leak_no_row(small_database, tenants, calls):
    seed = random.randrange(2**32)

    assert await leaks(small_database, tenants, calls, seed) == [], f"seed {seed}"


@pytest.mark.needs_program("pgbouncer")
@many_calls
async def test_thousands_of_calls_through_a_transaction_pooler_leak_no_row(
    addresses, tenants, tmp_path, calls
):
    seed = random.randrange(2**32)

    async with (
        transaction_pooler(addresses, tmp_path) as pooled,
        dual_client(pooled, pool_size=16, statement_cache=False) as database,
    ):
        assert await leaks(database, tenants, calls, seed) == [], f"seed {seed}"


async def test_batched_call_computes_each_result_with_its_own_claims(database, tenants):
    strangers = [claims_of(uuid.uuid4()), "", '{"role": "anon"}']
    claims = [tenant.claims for tenant in tenants] + strangers
    chosen = [None] * len(tenants) + [tenants[0].account_id] * len(strangers)

    rows = await database.call_for_many(BALANCES, claims, chosen)

    assert [row["account_id"] for row in rows] == [tenant.account_id for tenant in tenants] + [None] * 3


@pytest.mark.parametrize("way", ["call", "call for many", "transaction"])
async def test_claims_end_with_their_transaction(addresses, tenants, way):
    async with dual_client(addresses, pool_size=1) as database:
        session = database.user(tenants[0].claims)
        if way == "call":
            await session.call(BALANCE)
        elif way == "call for many":
            await database.call_for_many(BALANCES, [tenants[0].claims], [None])
        else:
            async with session.transaction():
                await session.fetch(MINE)

        (row,) = await database.call_for_many(LEFT_OVER)

        assert row["claims"] is None


@pytest.mark.parametrize("name", ["O'Brien", "'); drop table accounts; --", "\\'", "a\\u0000b", "日本"])
async def test_hostile_claims_stay_data(database, name):
    claims = f'{{"sub": "{uuid.uuid4()}", "name": "{name}"}}'.replace("\\'", "\\\\'")
    session = database.user(claims)

    async with session.transaction():
        (row,) = await session.fetch("select current_setting('request.jwt.claims') as claims")

    assert row["claims"] == claims


async def test_user_statement_outside_a_transaction_raises_an_error(database, tenant):
    with pytest.raises(AssertionError):
        await database.user(tenant.claims).fetch(MINE)


async def test_a_caller_never_joins_another_callers_transaction(database, tenant, other_tenant):
    async with database.user(tenant.claims).transaction():
        other = database.user(other_tenant.claims)
        with pytest.raises(AssertionError):
            await other.fetch(MINE)
        with pytest.raises(AssertionError):
            async with other.transaction():
                pass


async def test_nested_transactions_are_one(database, owner, tenant):
    session, other = database.admin("test"), database.admin("another part of the system")
    rename = "update accounts set name = $2 where id = $1"

    with pytest.raises(ZeroDivisionError):
        async with session.transaction():
            async with other.transaction():
                await other.fetch(rename, tenant.account_id, "changed")
            raise ZeroDivisionError

    assert await owner.fetchval("select name from accounts where id = $1", tenant.account_id) == "Test"


async def test_admin_statement_contains_its_reason(database, owner):
    await database.admin("night shift").fetch("select 1")

    assert await owner.fetchval(
        "select true from pg_stat_activity where query = '/* night shift */ select 1'"
    )


async def test_lost_connection_is_unavailable_and_the_next_call_works(small_database, owner):
    session = small_database.admin("test")
    (row,) = await session.fetch("select pg_backend_pid() as pid")
    with pytest.raises(DatabaseUnavailable):
        async with session.transaction():
            await owner.execute("select pg_terminate_backend($1)", row["pid"])
            await session.fetch("select 1")

    assert await session.fetch("select 1 as one")


async def test_address_without_a_server_is_unavailable(tmp_path):
    nowhere = f"postgresql://x@/x?host={tmp_path}"

    with pytest.raises(DatabaseUnavailable):
        async with dual_client(DatabaseUrls(owner="", user=nowhere, admin=nowhere)):
            pass


@pytest.mark.parametrize("error", [OSError("disk"), TimeoutError(), ValueError("own")], ids=repr)
async def test_exception_of_the_borrower_is_not_changed(database, owner, tenant, error):
    session = database.admin("test")

    with pytest.raises(type(error)) as raised:
        async with session.transaction():
            await session.fetch("update accounts set name = 'changed' where id = $1", tenant.account_id)
            raise error

    assert raised.value is error
    assert await owner.fetchval("select name from accounts where id = $1", tenant.account_id) == "Test"


async def test_lock_timeout_can_be_retried(database, owner, tenant):
    session = database.admin("test")
    async with owner.transaction():
        await owner.execute("select 1 from accounts where id = $1 for update", tenant.account_id)

        with pytest.raises(DatabaseUnavailable):
            await session.fetch("select 1 from accounts where id = $1 for update nowait", tenant.account_id)
