"""The dual client: sessions that see what one caller may see, and sessions of the system itself.

Two pools under two login roles, so that no forgotten filter and no leaked setting turns one into the
other. ``app_user`` is subject to row level security and knows its caller by transaction-local claims;
``app_admin`` acts as ``service_role``, and every use of it says what for. A repository takes the type
it needs.
"""

from __future__ import annotations  # asyncpg's classes are generic in their stubs only

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import LiteralString

import asyncpg
from asyncpg import Record

from infrastructure.database.pool import Borrowed, Pool, Url, open_pool
from shared.errors import Unavailable

# What the server says, or asyncpg about it, when trying again is the thing to do.
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.LockNotAvailableError,
    asyncpg.TransactionRollbackError,
    asyncpg.InternalClientError,  # a connection that dies while it is used may end up confused
)

_admin: ContextVar[Borrowed | None] = ContextVar("admin_connection", default=None)
_user: ContextVar[tuple[str, Borrowed] | None] = ContextVar("user_connection", default=None)


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"

    def __str__(self) -> str:
        return "The database does not answer. Nothing was lost; try again in a moment."


@asynccontextmanager
async def _borrowed(pool: Pool) -> AsyncGenerator[Borrowed]:
    """A connection for as long as it takes; what breaks it is told in our words."""
    try:
        connection = await pool.acquire()
    except (OSError, TimeoutError, asyncpg.InternalClientError, asyncpg.PostgresError) as error:
        raise DatabaseUnavailable from error
    try:
        yield connection
    except _LOST as error:
        connection.terminate()
        raise DatabaseUnavailable from error
    except (OSError, asyncpg.InterfaceError) as error:
        if connection.is_closed():  # else it is the borrower's own
            raise DatabaseUnavailable from error
        raise
    except Exception:
        raise
    except BaseException:
        # Cancelled at an unknown point. The server rolls back what it has lost.
        connection.terminate()
        raise
    finally:
        pool.release(connection)


@asynccontextmanager
async def _transaction(pool: Pool, begin: str) -> AsyncGenerator[Borrowed]:
    async with _borrowed(pool) as connection:
        await connection.execute(begin)
        try:
            yield connection
        except _LOST:
            raise  # with the connection, and so with the transaction, it is over
        except Exception:
            await connection.execute("rollback")
            raise
        await connection.execute("commit")


class UserClient:
    """What one caller may see and do; row level security decides."""

    def __init__(self, pool: Pool, claims: str) -> None:
        self._pool = pool
        self._claims = claims

    async def call(self, statement: LiteralString, *args: object) -> list[Record]:
        """Ask a function of schema ``caller`` that takes the claims as $1: one round trip."""
        async with _borrowed(self._pool) as connection:
            return await connection.fetch(statement, self._claims, *args)

    async def fetch(self, statement: LiteralString, *args: object) -> list[Record]:
        """Inside ``transaction`` only: outside it there are no claims, hence no rows."""
        current = _user.get()
        assert current is not None, "a caller's statement needs transaction()"
        assert current[0] == self._claims, "a caller never joins another caller's transaction"
        return await current[1].fetch(statement, *args)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """Several statements under the same claims. A nested call joins."""
        current = _user.get()
        if current is not None:
            assert current[0] == self._claims, "a caller never joins another caller's transaction"
            yield
            return
        # One simple message begins and sets the claims; they end with the transaction.
        begin = f"begin; select set_config('request.jwt.claims', {_quoted(self._claims)}, true)"
        async with _transaction(self._pool, begin) as connection:
            token = _user.set((self._claims, connection))
            try:
                yield
            finally:
                _user.reset(token)


class AdminClient:
    """The system's own work. The reason stands in front of every statement, for whoever reads
    pg_stat_activity or the server's log.
    """

    def __init__(self, pool: Pool, reason: LiteralString) -> None:
        self._pool = pool
        self._comment: LiteralString = "/* " + reason + " */ "

    async def fetch(self, statement: LiteralString, *args: object) -> list[Record]:
        connection = _admin.get()
        if connection is not None:
            return await connection.fetch(self._comment + statement, *args)
        async with _borrowed(self._pool) as borrowed:
            return await borrowed.fetch(self._comment + statement, *args)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """Commit at the end, or roll back. A nested call joins the one already open."""
        if _admin.get() is not None:
            yield
            return
        async with _transaction(self._pool, "begin") as connection:
            token = _admin.set(connection)
            try:
                yield
            finally:
                _admin.reset(token)


class Database:
    def __init__(self, user_pool: Pool, admin_pool: Pool) -> None:
        self._user_pool = user_pool
        self._admin_pool = admin_pool

    def user(self, claims: str) -> UserClient:
        """A session for one caller. ``claims``: JSON that this application built, never a token's own."""
        return UserClient(self._user_pool, claims)

    async def call_for_many(self, statement: LiteralString, *args: object) -> list[Record]:
        """Ask a function of schema ``caller`` that takes the claims of many callers as an array in $1
        and answers each under its own.
        """
        async with _borrowed(self._user_pool) as connection:
            return await connection.fetch(statement, *args)

    def admin(self, reason: LiteralString) -> AdminClient:
        return AdminClient(self._admin_pool, reason)


def _quoted(text: str) -> str:
    assert "\0" not in text, "JSON has no NUL"
    return "'" + text.replace("'", "''") + "'"


@asynccontextmanager
async def connect(
    *, user_url: Url, admin_url: Url, pool_size: int, statement_cache: bool
) -> AsyncGenerator[Database]:
    """``statement_cache=False`` behind a transaction pooler, where sessions are shared.

    A connection a side is made at once: a wrong address is better known now than later.
    """
    async with (
        open_pool(user_url, size_max=pool_size, statement_cache=statement_cache) as user_pool,
        open_pool(admin_url, size_max=pool_size, statement_cache=statement_cache) as admin_pool,
    ):
        for pool in (user_pool, admin_pool):
            async with _borrowed(pool):
                pass
        yield Database(user_pool, admin_pool)
