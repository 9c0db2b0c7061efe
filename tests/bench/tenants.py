"""Accounts with a history, and the database as the application opens it."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg
from place import Place
from rounds import TASKS

from infrastructure.database.clients import Database, connect

ENTRIES_FEW = 10
BALANCE = "select * from caller.credit_balance($1, $2)"

# One grant, of which one credit expires with each entry, so that the audit finds no difference.
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
async def open_database(place: Place) -> AsyncGenerator[Database]:
    async def user_url() -> str:
        return place.addresses.user

    async def admin_url() -> str:
        return place.addresses.admin

    async with connect(
        user_url=user_url, admin_url=admin_url, pool_size=TASKS, statement_cache=True
    ) as database:
        yield database


async def make_tenant(owner: asyncpg.Connection, entries_count: int) -> tuple[uuid.UUID, str]:
    """Creates an account with this many entries; returns its id and its only member's claims."""
    user_id = uuid.uuid4()
    await owner.execute("select private.sign_up_if_new($1, '', 'Bench', 0)", user_id)
    account_id = await owner.fetchval("select account_id from public.sign_ups where user_id = $1", user_id)
    async with owner.transaction():
        # Without a million checks of the same two foreign keys.
        await owner.execute("set local session_replication_role = replica")
        await owner.execute(HISTORY, account_id, entries_count)
    return account_id, f'{{"sub": "{user_id}", "role": "authenticated"}}'


async def settle(owner: asyncpg.Connection) -> None:
    """Runs vacuum and checkpoint now, so that none for this data falls into the measurement."""
    await owner.execute("vacuum (analyze)")
    await owner.execute("checkpoint")
