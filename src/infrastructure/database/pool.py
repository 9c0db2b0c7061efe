"""Connection pool with a hundredth of the overhead of asyncpg's own pool.

asyncpg.Pool spends as much CPU on lending a connection as the query itself costs: a proxy, a task, a
shield and a reset each time. This application sets nothing per session, so no reset is needed, and a
connection after an error is closed instead of repaired.
"""

from __future__ import annotations  # asyncpg's classes are generic in their stubs only

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg
from asyncpg import Connection, Record

ACQUIRE_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 5.0
# The roles' own timeouts apply first; this limit is for a server that no longer responds. A periodic check of
# all connections is cheap, a timer for every statement is not.
LENT_S_MAX = 120.0
LOOK_INTERVAL_S = 5.0

Borrowed: TypeAlias = "Connection[Record]"
Url = Callable[[], Awaitable[str]]
"""Called for every new connection, so that a rotated password applies without a restart."""


class Pool:
    """At most ``size_max`` connections, opened when needed, each lent to one borrower at a time."""

    def __init__(self, url: Url, *, size_max: int, statement_cache: bool) -> None:
        self._url = url
        self._size_max = size_max
        self._statement_cache_size = 256 if statement_cache else 0
        self._idle: list[Borrowed] = []  # the most recently used last
        self._lent: dict[Borrowed, float] = {}  # with the time of lending
        self._opening = 0
        self._now_s = asyncio.get_running_loop().time
        # A waiter receives a connection, or None: the right to open one.
        self._waiters: deque[asyncio.Future[Borrowed | None]] = deque()

    async def acquire(self) -> Borrowed:
        """Waits for a connection, five seconds at most. The caller must release it."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                self._lent[connection] = self._now_s()
                return connection
        if len(self._lent) + self._opening < self._size_max:
            return await self._open()
        return await self._wait()

    def release(self, connection: Borrowed) -> None:
        """Takes a connection back. One that is closed or in a transaction is closed, not lent again."""
        self._lent.pop(connection, None)
        if connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
            self._pass_on_right_to_open()
        elif waiter := self._next_waiter():
            self._lent[connection] = self._now_s()
            waiter.set_result(connection)
        else:
            self._idle.append(connection)

    async def end_the_stuck(self) -> None:
        """Closes connections to servers that no longer respond, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            oldest = self._now_s() - LENT_S_MAX
            for connection in [lent for lent, since in self._lent.items() if since < oldest]:
                connection.terminate()

    async def close(self) -> None:
        for connection in (*self._idle, *self._lent):
            try:
                await connection.close(timeout=CLOSE_TIMEOUT_S)
            except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                connection.terminate()
        self._idle.clear()
        self._lent.clear()

    async def _open(self) -> Borrowed:
        self._opening += 1
        try:
            connection = await asyncpg.connect(
                await self._url(),
                timeout=CONNECT_TIMEOUT_S,
                statement_cache_size=self._statement_cache_size,
            )
        except BaseException:
            self._opening -= 1
            self._pass_on_right_to_open()
            raise
        self._opening -= 1
        self._lent[connection] = self._now_s()
        return connection

    async def _wait(self) -> Borrowed:
        waiter: asyncio.Future[Borrowed | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(ACQUIRE_TIMEOUT_S):
                connection = await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                self._return_unused(waiter.result())
            raise
        return connection if connection is not None else await self._open()

    def _return_unused(self, connection: Borrowed | None) -> None:
        """Passes on a connection that arrived in the moment of the waiter's timeout or cancellation."""
        if connection is None:
            self._pass_on_right_to_open()
        else:
            self.release(connection)

    def _next_waiter(self) -> asyncio.Future[Borrowed | None] | None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                return waiter
        return None

    def _pass_on_right_to_open(self) -> None:
        if waiter := self._next_waiter():
            waiter.set_result(None)


@asynccontextmanager
async def open_pool(url: Url, *, size_max: int, statement_cache: bool) -> AsyncGenerator[Pool]:
    pool = Pool(url, size_max=size_max, statement_cache=statement_cache)
    watch = asyncio.create_task(pool.end_the_stuck())
    try:
        yield pool
    finally:
        watch.cancel()
        await pool.close()
