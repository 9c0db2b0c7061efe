"""The database's part: what row level security costs, what a spend costs, what a long history costs."""

import random
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from statistics import mean, median

import asyncpg
from place import BenchFailed, Place
from processes import pgbench
from rounds import TASKS, Call, Pair, Round, calls_per_s

from infrastructure.database.credits import PostgresCreditReader
from infrastructure.database.pool import open_pool
from infrastructure.database.sessions import Database, connect
from shared.caller import Caller
from shared.ids import AccountId, UserId

ACCOUNTS_COUNT = 1_000
ENTRIES_FEW = 10
ENTRIES_MANY = 1_000_000
SLICE_S = 0.25  # in turns within a round too, where switching costs nothing

BALANCE = "select * from caller.credit_balance($1, $2)"
BARE = """
select account_id, credits_available, credits_held, next_lapse_at
from credit_accounts where account_id = $1
"""
SPEND = "select * from ledger.spend($1, 1, $2, 'analysis')"

# The accounts' ids are the numbers 1 to 1,000, so that both sides draw one at random at the same price.
SPENDING_ACCOUNTS = f"""
with ids as (
    select lpad(to_hex(number), 32, '0')::uuid as id from generate_series(1, {ACCOUNTS_COUNT}) as number
), made as (
    insert into accounts (id, name) select id, 'Bench' from ids
)
insert into credit_accounts (account_id) select id from ids;
select ledger.grant_credits(account_id, 1000000000, 'bench', 'admin_grant') from credit_accounts
where account_id <= lpad(to_hex({ACCOUNTS_COUNT}), 32, '0')::uuid;
"""
SPEND_BY_PGBENCH = f"""\\set number random(1, {ACCOUNTS_COUNT})
select * from ledger.spend(
    lpad(to_hex(:number::int), 32, '0')::uuid, 1, gen_random_uuid()::text, 'analysis');
"""
ENTRIES_EVER = "select sum(entries_count)::bigint from credit_accounts"

# One grant, then a credit of it lapses with each entry: the audit finds nothing wrong with it.
HISTORY = """
with lot as (
    insert into credit_lots (account_id, id, source, credits_granted, credits_available, granted_at)
    values ($1, 1, 'promotion', 2 * $2, $2 + 1, now())
), account as (
    update credit_accounts set credits_available = $2 + 1, entries_count = $2 where account_id = $1
)
insert into credit_entries (
    account_id, position, kind, reference, transaction_type, credits_delta, balance_after, held_after,
    lot_id, created_at
)
select $1, position, case position when 1 then 'grant' else 'expire' end, 'bench:' || position,
    case position when 1 then 'admin_grant' else 'expiry' end,
    case position when 1 then 2 * $2 else -1 end, 2 * $2 - position + 1, 0, 1, now()
from generate_series(1, $2::bigint) as position
"""


@asynccontextmanager
async def session_and_bare_query(place: Place) -> AsyncGenerator[Round]:
    account_id, claims = await _tenant(place.owner, ENTRIES_FEW)
    await _settle(place.owner)

    async def keep(_: object) -> None:
        """Reset nothing, which is the fastest that asyncpg's pool can be."""

    async with (
        _database(place) as database,
        asyncpg.create_pool(place.addresses.owner, min_size=TASKS, max_size=TASKS, reset=keep) as pool,
    ):

        async def bare_read() -> None:
            (row,) = await pool.fetch(BARE, account_id)
            assert row["account_id"] == account_id

        yield partial(_in_slices, _session_read(database, claims, account_id), bare_read)


@asynccontextmanager
async def session_and_bare_query_on_our_pool(place: Place) -> AsyncGenerator[Round]:
    """The same without the client's advantage: what is left is what the server does more."""
    async with _own_pool(place) as (database, claims, account_id, bare_read):
        yield partial(_in_slices, _session_read(database, claims, account_id), bare_read)


@asynccontextmanager
async def balance_and_bare_query_on_our_pool(place: Place) -> AsyncGenerator[Round]:
    """The balance as the API reads it: under row level security, simultaneous ones together."""
    async with _own_pool(place) as (database, claims, account_id, bare_read):
        reader = PostgresCreditReader(database)
        caller = Caller(
            user_id=UserId(uuid.uuid4()),
            claims=claims,
            is_operator=False,
            chosen_account=AccountId(account_id),
        )

        async def read() -> None:
            assert (await reader.balance(caller)).account_id == account_id

        yield partial(_in_slices, read, bare_read)


@asynccontextmanager
async def _own_pool(place: Place) -> AsyncGenerator[tuple[Database, str, uuid.UUID, Call]]:
    account_id, claims = await _tenant(place.owner, ENTRIES_FEW)
    await _settle(place.owner)

    async def owner_url() -> str:
        return place.addresses.owner

    async with (
        _database(place) as database,
        open_pool(owner_url, size_max=TASKS, statement_cache=True) as pool,
    ):

        async def bare_read() -> None:
            connection = await pool.acquire()
            try:
                (row,) = await connection.fetch(BARE, account_id)
            finally:
                pool.release(connection)
            assert row["account_id"] == account_id

        yield database, claims, account_id, bare_read


def _session_read(database: Database, claims: str, account_id: uuid.UUID) -> Call:
    async def read() -> None:
        (row,) = await database.user(claims).call(BALANCE, account_id)
        assert row["account_id"] == account_id

    return read


async def _in_slices(subject: Call, floor: Call, seconds: int) -> Pair:
    slices = [
        Pair(subject=await calls_per_s(subject, SLICE_S), floor=await calls_per_s(floor, SLICE_S))
        for _ in range(int(seconds / SLICE_S))
    ]
    return Pair(*map(mean, zip(*slices, strict=True)))


@asynccontextmanager
async def spends_and_pgbench(place: Place) -> AsyncGenerator[Round]:
    await place.owner.execute(SPENDING_ACCOUNTS)
    await _settle(place.owner)
    script = place.folder / "spend.sql"
    script.write_text(SPEND_BY_PGBENCH)
    async with _database(place) as database:
        session = database.admin("benchmark")

        async def spend() -> None:
            account_id = uuid.UUID(int=random.randint(1, ACCOUNTS_COUNT))
            (row,) = await session.fetch(SPEND, account_id, str(uuid.uuid4()))
            assert row["outcome"] == "done"

        async def measure_round(seconds: int) -> Pair:
            ours = await calls_per_s(spend, seconds)
            entries_before = await place.owner.fetchval(ENTRIES_EVER)
            theirs, spends_count = await pgbench(place.addresses.admin, script, seconds)
            if await place.owner.fetchval(ENTRIES_EVER) != entries_before + spends_count:
                raise BenchFailed("Not every transaction of pgbench was a spend.")
            return Pair(subject=ours, floor=theirs)

        yield measure_round


@asynccontextmanager
async def long_and_short_history(place: Place) -> AsyncGenerator[Round]:
    many = await _tenant(place.owner, ENTRIES_MANY)
    few = await _tenant(place.owner, ENTRIES_FEW)
    await _settle(place.owner)
    async with _database(place) as database:

        async def latency_us(account_id: uuid.UUID, claims: str) -> float:
            started_at = time.perf_counter()
            await database.user(claims).call(BALANCE, account_id)
            return (time.perf_counter() - started_at) * 1e6

        async def measure_round(seconds: int) -> Pair:
            """In turns, call by call: nothing can slow one of the two only."""
            latencies: list[Pair] = []
            until = time.perf_counter() + 2 * seconds
            while time.perf_counter() < until:
                latencies.append(Pair(subject=await latency_us(*many), floor=await latency_us(*few)))
            return Pair(*map(median, zip(*latencies, strict=True)))

        yield measure_round


@asynccontextmanager
async def _database(place: Place) -> AsyncGenerator[Database]:
    async def user_url() -> str:
        return place.addresses.user

    async def admin_url() -> str:
        return place.addresses.admin

    async with connect(
        user_url=user_url, admin_url=admin_url, pool_size=TASKS, statement_cache=True
    ) as database:
        yield database


async def _tenant(owner: asyncpg.Connection, entries_count: int) -> tuple[uuid.UUID, str]:
    """An account with so many entries, and its only member's claims."""
    user_id = uuid.uuid4()
    account_id = await owner.fetchval("select private.first_sight($1, 'Bench', 0)", user_id)
    async with owner.transaction():
        # Without a million looks at the same two foreign keys.
        await owner.execute("set local session_replication_role = replica")
        await owner.execute(HISTORY, account_id, entries_count)
    return account_id, f'{{"sub": "{user_id}", "role": "authenticated"}}'


async def _settle(owner: asyncpg.Connection) -> None:
    """Let no vacuum or checkpoint of what was just written fall into the measurement."""
    await owner.execute("vacuum (analyze)")
    await owner.execute("checkpoint")
