"""Migration of the DBOS tables in the schema ``dbos`` of our database."""

from __future__ import annotations  # asyncpg's classes are generic in their stubs only

import asyncio
from contextlib import suppress
from importlib.metadata import version
from typing import LiteralString

import asyncpg
from asyncpg import Connection, Record

LOCK: LiteralString = """
set local lock_timeout = '200ms';
select pg_advisory_xact_lock(7305803403);
set local lock_timeout = '30s';
"""
MADE_BY: LiteralString = "select obj_description(to_regnamespace('dbos'), 'pg_namespace')"
# The service role uses the tables; no other role has a privilege, because step results are tenants' data.
GRANTS: LiteralString = """
revoke all on schema dbos from public, anon, authenticated;
revoke all on all tables in schema dbos from public, anon, authenticated;
revoke all on all sequences in schema dbos from public, anon, authenticated;
revoke all on all functions in schema dbos from public, anon, authenticated;
grant usage on schema dbos to service_role;
grant select, insert, update, delete on all tables in schema dbos to service_role;
grant usage on all sequences in schema dbos to service_role;
grant execute on all functions in schema dbos to service_role;
"""


async def migrate_engine(owner_url: str) -> str | None:
    """Migrate the DBOS tables. Returns the DBOS version they now have, or None when they were current.
    Idempotent; any number of processes may call it concurrently.
    """
    maker = f"dbos {version('dbos')}"
    connection = await asyncpg.connect(owner_url, timeout=10, statement_cache_size=0)
    try:
        while await connection.fetchval(MADE_BY) != maker:
            with suppress(asyncpg.LockNotAvailableError):
                await _migrate_alone(connection, owner_url, maker)
                return maker
    finally:
        await connection.close()
    return None


async def _migrate_alone(connection: Connection[Record], owner_url: str, maker: str) -> None:
    """Migrate under a transaction lock. Raises LockNotAvailableError while another process migrates.

    The lock of DBOS belongs to a session, which a transaction pooler may share between two clients. The lock
    timeout is short because a concurrent index build waits for all running statements, including one that
    waits for this lock.
    """
    async with connection.transaction():
        await connection.execute(LOCK)
        await asyncio.to_thread(_migrate, owner_url)
        await connection.execute(GRANTS)
        await connection.execute(f"comment on schema dbos is '{maker}'")


def _migrate(owner_url: str) -> None:
    # Importing DBOS takes three seconds of CPU time, which is not needed when the tables are current.
    from dbos import DBOS  # noqa: PLC0415

    from core.engine.configuration import relay_log  # noqa: PLC0415

    relay_log()
    DBOS.migrate(owner_url)
