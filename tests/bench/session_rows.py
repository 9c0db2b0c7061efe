"""Cost of row level security."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from statistics import mean

import asyncpg
from place import Place
from rounds import TASKS, Call, Pair, Round, calls_per_s
from tenants import BALANCE, ENTRIES_FEW, make_tenant, open_database, settle

from infrastructure.database.clients import Database
from infrastructure.database.credits.ledger import PostgresCreditReader
from infrastructure.database.pool import open_pool
from shared.caller import Caller
from shared.ids import AccountId, UserId

SLICE_S = 0.25  # alternate within a round too, because switching costs nothing
BARE = """
select account_id, credits_available, credits_held, next_lapse_at
from credit_accounts where account_id = $1
"""


@asynccontextmanager
async def session_and_bare_query(place: Place) -> AsyncGenerator[Round]:
    account_id, claims = await make_tenant(place.owner, ENTRIES_FEW)
    await settle(place.owner)

    async def keep(_: object) -> None:
        """Resets nothing, which makes asyncpg's pool as fast as possible."""

    async with (
        open_database(place) as database,
        asyncpg.create_pool(place.addresses.owner, min_size=TASKS, max_size=TASKS, reset=keep) as pool,
    ):

        async def bare_read() -> None:
            (row,) = await pool.fetch(BARE, account_id)
            assert row["account_id"] == account_id

        yield partial(_in_slices, _session_read(database, claims, account_id), bare_read)


@asynccontextmanager
async def session_and_bare_query_on_our_pool(place: Place) -> AsyncGenerator[Round]:
    """The same with our pool on both sides: the difference is the server's additional work."""
    async with _own_pool(place) as (database, claims, account_id, bare_read):
        yield partial(_in_slices, _session_read(database, claims, account_id), bare_read)


@asynccontextmanager
async def balance_and_bare_query_on_our_pool(place: Place) -> AsyncGenerator[Round]:
    """The balance as the API reads it: under row level security, in micro-batches."""
    async with _own_pool(place) as (database, claims, account_id, bare_read):
        reader = PostgresCreditReader(database)
        caller = Caller(
            id=UserId(uuid.uuid4()),
            claims=claims,
            chosen_account=AccountId(account_id),
        )

        async def read() -> None:
            assert (await reader.balance(caller)).account_id == account_id

        yield partial(_in_slices, read, bare_read)


@asynccontextmanager
async def _own_pool(place: Place) -> AsyncGenerator[tuple[Database, str, uuid.UUID, Call]]:
    account_id, claims = await make_tenant(place.owner, ENTRIES_FEW)
    await settle(place.owner)

    async def owner_url() -> str:
        return place.addresses.owner

    async with (
        open_database(place) as database,
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
