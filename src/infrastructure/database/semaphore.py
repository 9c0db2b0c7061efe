"""Distributed semaphore: slots across all processes, stored as leases that expire unless renewed."""

from __future__ import annotations  # asyncpg's classes are generic in their stubs only

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import LiteralString, NamedTuple
from uuid import UUID, uuid4

from asyncpg import Record

from infrastructure.database.clients import Database, DatabaseUnavailable
from infrastructure.resilience.semaphore import DistributedSemaphore, SlotLost
from shared.cancellation import run_uncancelled
from shared.errors import Unavailable

LEASE: LiteralString = "select * from traffic.acquire_leases($1, $2, $3, $4) as holder"
RENEW: LiteralString = """
update traffic.leases set expires_at = clock_timestamp() + make_interval(secs => $2)
where holder = $1 and expires_at > clock_timestamp()
returning holder
"""
RELEASE: LiteralString = "delete from traffic.leases where holder = $1"

LIFETIME_S = 30.0
QUERY_S = 5.0  # well below a lease's lifetime, or a granted lease would have expired
POLL_MIN_S = 0.05
POLL_MAX_S = 0.5


class _Lease(NamedTuple):
    holder: UUID
    ends_at_s: float  # by the loop's clock; earlier than the row's expiry, so that the holder stops in time


class _Queue:
    def __init__(self) -> None:
        self.turn = asyncio.Lock()  # first in, first out: only the first waiter polls the database
        self.waiters = 0
        self.limit = 0


class PostgresSemaphore(DistributedSemaphore):
    def __init__(
        self,
        database: Database,
        *,
        lifetime_s: float = LIFETIME_S,
        query_s: float = QUERY_S,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._session = database.admin("slots")
        self._lifetime_s = lifetime_s
        self._query_s = query_s
        self._jitter = jitter
        self._queues: dict[str, _Queue] = {}

    @asynccontextmanager
    async def acquire(self, name: str, limit: int) -> AsyncGenerator[None]:
        async with self._hold(name, await self._wait(name, limit)):
            yield

    @asynccontextmanager
    async def acquire_now(self, name: str, limit: int) -> AsyncGenerator[bool]:
        lease = None
        if name not in self._queues:
            with suppress(Unavailable):
                lease = await self._lease(name, limit)
        if lease is None:
            yield False
            return
        async with self._hold(name, lease):
            yield True

    async def _wait(self, name: str, limit: int) -> _Lease:
        queue = self._queues.setdefault(name, _Queue())
        queue.limit = limit
        queue.waiters += 1
        try:
            async with queue.turn:
                while True:
                    lease = await self._lease(name, queue.limit)
                    if lease is not None:
                        return lease
                    await asyncio.sleep(self._jitter(POLL_MIN_S, POLL_MAX_S))
        finally:
            queue.waiters -= 1
            if not queue.waiters:
                del self._queues[name]

    async def _lease(self, name: str, limit: int) -> _Lease | None:
        holder, ends_at_s = uuid4(), self._ends_at_s()
        try:
            rows = await run_uncancelled(self._fetch(LEASE, name, limit, [holder], self._lifetime_s))
        except BaseException:
            await run_uncancelled(self._release(holder))  # the lease may exist although its response was lost
            raise
        return _Lease(holder, ends_at_s) if rows else None

    @asynccontextmanager
    async def _hold(self, name: str, lease: _Lease) -> AsyncGenerator[None]:
        deadline = asyncio.timeout_at(lease.ends_at_s)
        renewal = asyncio.create_task(self._renew(lease.holder, deadline))
        try:
            async with deadline:
                yield
        except TimeoutError:
            if deadline.expired():
                raise SlotLost(name=name) from None
            raise
        finally:
            renewal.cancel()
            await run_uncancelled(self._release(lease.holder))

    async def _renew(self, holder: UUID, deadline: asyncio.Timeout) -> None:
        """Extends the deadline of the holder. Without a renewal the deadline cancels the holder."""
        wait_s = self._lifetime_s / 3
        while True:
            await asyncio.sleep(wait_s)
            ends_at_s = self._ends_at_s()
            try:
                rows = await self._fetch(RENEW, holder, self._lifetime_s)
            except Exception:  # noqa: BLE001  retried after any error, until the deadline
                wait_s = self._lifetime_s / 15
                continue
            if deadline.expired():
                return
            deadline.reschedule(ends_at_s if rows else 0)
            wait_s = self._lifetime_s / 3

    def _ends_at_s(self) -> float:
        return asyncio.get_running_loop().time() + self._lifetime_s * 2 / 3

    async def _release(self, holder: UUID) -> None:
        with suppress(Unavailable):  # the lease expires by itself
            await self._fetch(RELEASE, holder)

    async def _fetch(self, statement: LiteralString, *args: object) -> list[Record]:
        try:
            async with asyncio.timeout(self._query_s):
                return await self._session.fetch(statement, *args)
        except TimeoutError as error:
            raise DatabaseUnavailable from error
