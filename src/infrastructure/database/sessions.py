"""The dual client: sessions that see what one caller may see, and sessions of the system itself.

Two pools under two login roles, so that no forgotten filter and no leaked setting turns one into the
other. ``app_user`` is subject to row level security and knows its caller by transaction-local claims;
``app_admin`` acts as ``service_role``, and every use of it says what for. A repository takes the type
it needs.
"""

from __future__ import annotations  # asyncpg's classes are generic in their stubs only

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any, LiteralString, TypeAlias

import asyncpg
from asyncpg import Connection, Pool, Record
from asyncpg.pool import PoolConnectionProxy

from shared.errors import Unavailable

ACQUIRE_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 5.0
# The roles' own statement timeouts come first; this one is for a server that has stopped answering.
COMMAND_TIMEOUT_S = 75.0

_LOST = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InterfaceError,
)

Borrowed: TypeAlias = "PoolConnectionProxy[Record]"
_admin: ContextVar[Borrowed | None] = ContextVar("admin_connection", default=None)
_user: ContextVar[tuple[str, Borrowed] | None] = ContextVar("user_connection", default=None)


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"

    def __str__(self) -> str:
        return "The database does not answer. Nothing was lost; try again in a moment."


class _Side:
    """One pool: borrowing with a deadline, and failures in our words."""

    def __init__(self, pool: Pool[Record]) -> None:
        self._pool = pool

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Borrowed]:
        connection = await self._acquire()
        try:
            yield connection
        finally:
            await self._pool.release(connection)

    async def fetch(self, statement: str, args: tuple[object, ...]) -> list[Record]:
        try:
            connection = await self._acquire()
            try:
                return await connection.fetch(statement, *args)
            finally:
                await self._pool.release(connection)
        except _LOST as error:
            raise DatabaseUnavailable from error

    async def _acquire(self) -> Borrowed:
        if self._pool.get_idle_size():
            return await self._pool.acquire()
        # A deadline costs a timer and a handle: only those pay for it who have to wait.
        async with asyncio.timeout(ACQUIRE_TIMEOUT_S):
            return await self._pool.acquire()


class UserSession:
    """What one caller may see and do; row level security decides."""

    def __init__(self, side: _Side, claims: str) -> None:
        self._side = side
        self._claims = claims

    async def call(self, statement: LiteralString, *args: object) -> list[Record]:
        """Ask a function of schema ``caller`` that takes the claims as $1: one round trip."""
        return await self._side.fetch(statement, (self._claims, *args))

    async def fetch(self, statement: LiteralString, *args: object) -> list[Record]:
        """Inside ``transaction`` only: outside it there are no claims, hence no rows."""
        current = _user.get()
        assert current is not None, "a caller's statement needs transaction()"
        assert current[0] == self._claims, "a caller never joins another caller's transaction"
        return await current[1].fetch(statement, *args)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Several statements under the same claims. A nested call joins."""
        current = _user.get()
        if current is not None:
            assert current[0] == self._claims, "a caller never joins another caller's transaction"
            yield
            return
        try:
            async with self._side.connection() as connection:
                # One simple message begins and sets the claims; they end with the transaction.
                await connection.execute(
                    f"begin; select set_config('request.jwt.claims', {_quoted(self._claims)}, true)"
                )
                token = _user.set((self._claims, connection))
                try:
                    yield
                except BaseException:
                    await connection.execute("rollback")
                    raise
                else:
                    await connection.execute("commit")
                finally:
                    _user.reset(token)
        except _LOST as error:
            raise DatabaseUnavailable from error


class AdminSession:
    """The system's own work. The reason stands in front of every statement, for whoever reads
    pg_stat_activity or the server's log."""

    def __init__(self, side: _Side, reason: LiteralString) -> None:
        self._side = side
        self._comment: LiteralString = "/* " + reason + " */ "

    async def fetch(self, statement: LiteralString, *args: object) -> list[Record]:
        connection = _admin.get()
        if connection is not None:
            return await connection.fetch(self._comment + statement, *args)
        return await self._side.fetch(self._comment + statement, args)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Commit at the end, or roll back. A nested call joins the one already open."""
        if _admin.get() is not None:
            yield
            return
        try:
            async with self._side.connection() as connection, connection.transaction():
                token = _admin.set(connection)
                try:
                    yield
                finally:
                    _admin.reset(token)
        except _LOST as error:
            raise DatabaseUnavailable from error


class Database:
    def __init__(self, user_pool: Pool[Record], admin_pool: Pool[Record]) -> None:
        self._user_side = _Side(user_pool)
        self._admin_side = _Side(admin_pool)

    def user(self, claims: str) -> UserSession:
        """A session for one caller. ``claims``: the verified token's claims as JSON."""
        return UserSession(self._user_side, claims)

    def admin(self, reason: LiteralString) -> AdminSession:
        return AdminSession(self._admin_side, reason)


def _quoted(text: str) -> str:
    assert "\0" not in text, "JSON has no NUL"
    return "'" + text.replace("'", "''") + "'"


async def _keep_session(_: Connection[Record]) -> None:
    """Returned connections have nothing to reset: we never set anything for a session."""


Url = Callable[[], Awaitable[str]]
"""Asked for every new connection, so that a rotated password is taken up without a restart."""


def _pool(
    url: Url, *, size_max: int, statement_cache: bool
) -> AbstractAsyncContextManager[Pool[Record]]:
    async def open_connection(*_: object, **options: Any) -> Connection[Record]:
        return await asyncpg.connect(await url(), **options)

    return asyncpg.create_pool(
        min_size=1,
        max_size=size_max,
        timeout=CONNECT_TIMEOUT_S,
        command_timeout=COMMAND_TIMEOUT_S,
        statement_cache_size=256 if statement_cache else 0,
        connect=open_connection,
        reset=_keep_session,
    )


@asynccontextmanager
async def connect(
    *, user_url: Url, admin_url: Url, pool_size: int, statement_cache: bool
) -> AsyncIterator[Database]:
    """``statement_cache=False`` behind a transaction pooler, where sessions are shared."""
    async with (
        _pool(user_url, size_max=pool_size, statement_cache=statement_cache) as user_pool,
        _pool(admin_url, size_max=pool_size, statement_cache=statement_cache) as admin_pool,
    ):
        yield Database(user_pool, admin_pool)
