"""Dual client: user sessions limited to what one caller may see, and admin sessions of the system.

Two pools with two login roles, so that neither a forgotten filter nor a leaked setting turns one into the
other. ``app_user`` is subject to row level security and gets the caller's claims per transaction;
``app_admin`` acts as ``service_role``, and each use states its reason. A repository takes the type it needs.
"""

from __future__ import annotations  # asyncpg's classes are generic in their stubs only

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import LiteralString

import asyncpg
from asyncpg import Record

from infrastructure.database.pool import Borrowed, Pool, Url, open_pool
from shared.caller import Caller, no_account
from shared.errors import Unavailable
from shared.ids import AccountId

# The accounts that row level security allows: the chosen account, or all of the caller's if none is chosen.
ACCOUNTS: LiteralString = "select id from public.accounts where $1::uuid is null or id = $1"

# Errors of the server or of asyncpg after which the caller may retry.
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.LockNotAvailableError,
    asyncpg.TransactionRollbackError,
    asyncpg.InternalClientError,  # asyncpg's state can be inconsistent when a connection dies in use
)

_admin: ContextVar[Borrowed | None] = ContextVar("admin_connection", default=None)
_user: ContextVar[tuple[str, Borrowed] | None] = ContextVar("user_connection", default=None)


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"
    text = "The database does not answer. Nothing was lost; try again in a moment."


@asynccontextmanager
async def _borrowed(pool: Pool) -> AsyncGenerator[Borrowed]:
    """Lends a connection for the block; raises our own exceptions when the connection breaks."""
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
        if connection.is_closed():  # an open connection: the error is the borrower's own
            raise DatabaseUnavailable from error
        raise
    except Exception:
        raise
    except BaseException:
        # The cancellation came at an unknown point; the server rolls back when the connection closes.
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
            raise  # the transaction ended with its connection
        except Exception:
            await connection.execute("rollback")
            raise
        await connection.execute("commit")


class UserClient:
    """Statements with the rights of one caller, enforced by row level security."""

    def __init__(self, pool: Pool, claims: str) -> None:
        self._pool = pool
        self._claims = claims

    async def call(self, statement: LiteralString, *args: object) -> list[Record]:
        """Calls a function of schema ``caller`` that takes the claims as $1, in one round trip."""
        async with _borrowed(self._pool) as connection:
            return await connection.fetch(statement, self._claims, *args)

    async def fetch(self, statement: LiteralString, *args: object) -> list[Record]:
        """Must run inside ``transaction``: outside it there are no claims, hence no rows."""
        current = _user.get()
        assert current is not None, "a caller's statement needs transaction()"
        assert current[0] == self._claims, "a caller never joins another caller's transaction"
        return await current[1].fetch(statement, *args)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """Runs several statements with the same claims. A nested call joins the open transaction."""
        current = _user.get()
        if current is not None:
            assert current[0] == self._claims, "a caller never joins another caller's transaction"
            yield
            return
        # One simple message begins the transaction and sets the claims, which end with it.
        begin = f"begin; select set_config('request.jwt.claims', {_quoted(self._claims)}, true)"
        async with _transaction(self._pool, begin) as connection:
            token = _user.set((self._claims, connection))
            try:
                yield
            finally:
                _user.reset(token)


class AccountClient:
    """Statements with the rights of one caller, inside a transaction. Each has the account's id as $1."""

    def __init__(self, client: UserClient, account_id: AccountId) -> None:
        self._client = client
        self._account_id = account_id

    async def fetch(self, statement: LiteralString, *args: object) -> list[Record]:
        return await self._client.fetch(statement, self._account_id, *args)


class AdminClient:
    """Statements of the system itself. Each begins with the reason as a comment, which pg_stat_activity and
    the server's log show.
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
        """Commits at the end, or rolls back. A nested call joins the open transaction."""
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
        """Returns a session for one caller. ``claims``: JSON built by this application, never a token's."""
        return UserClient(self._user_pool, claims)

    @asynccontextmanager
    async def account(self, caller: Caller) -> AsyncGenerator[AccountClient]:
        """Opens a transaction in the chosen account, or in the caller's only one.

        Raises AccountNotFound or AccountNotChosen.
        """
        client = self.user(caller.claims)
        async with client.transaction():
            accounts = await client.fetch(ACCOUNTS, caller.chosen_account)
            if len(accounts) != 1:
                raise no_account(caller)
            yield AccountClient(client, AccountId(accounts[0]["id"]))

    async def fetch_for(self, caller: Caller, statement: LiteralString, *args: object) -> list[Record]:
        """Runs one statement in a transaction of ``account``."""
        async with self.account(caller) as account:
            return await account.fetch(statement, *args)

    async def call_for_many(self, statement: LiteralString, *args: object) -> list[Record]:
        """Calls a function of schema ``caller`` that takes the claims of many callers as an array in $1 and
        computes each result with the rights of its own caller.
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

    Opens one connection per pool at once, so that a wrong address fails at start-up.
    """
    async with (
        open_pool(user_url, size_max=pool_size, statement_cache=statement_cache) as user_pool,
        open_pool(admin_url, size_max=pool_size, statement_cache=statement_cache) as admin_pool,
    ):
        for pool in (user_pool, admin_pool):
            async with _borrowed(pool):
                pass
        yield Database(user_pool, admin_pool)
