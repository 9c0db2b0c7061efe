"""Distributed semaphore: slots across all processes, stored as leases that expire unless renewed."""

from __future__ import annotations  # asyncpg's classes are generic in their stubs only

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import LiteralString
from uuid import UUID, uuid4

from asyncpg import Record

from infrastructure.database.clients import Database, DatabaseUnavailable
from infrastructure.resilience.semaphore import DistributedSemaphore, SlotLost
from shared.cancellation import run_uncancelled
from shared.errors import Unavailable

LEASE: LiteralString = "select * from traffic.lease($1, $2, $3, $4) as holder"
RENEW: LiteralString = """
update traffic.leases set expires_at = clock_timestamp() + make_interval(secs => $2)
where holder = any($1::uuid[]) and expires_at > clock_timestamp()
returning holder
"""
RELEASE: LiteralString = "delete from traffic.leases where holder = any($1::uuid[])"

LIFETIME_S = 30.0
ANSWER_S = 5.0  # well below a lease's lifetime, or a granted lease would have expired
WAITERS_ASKED_FOR_MAX = 100
LOOK_INTERVAL_MIN_S = 0.05
LOOK_INTERVAL_MAX_S = 0.5


class _Lease:
    """Held by one task, which is cancelled when the lease is lost."""

    def __init__(self, holder: UUID, name: str, asked_at_s: float) -> None:
        self.holder = holder
        self.name = name
        self.renewed_at_s = asked_at_s  # time of the request: the lease's lifetime starts later
        self._task: asyncio.Task[object] | None = None
        self._is_lost = False
        self._is_over = False
        self._cancelled_before = 0

    def enter(self) -> None:
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelled_before = self._task.cancelling()

    def lose(self) -> None:
        if self._task is not None and not self._is_over:
            self._is_lost = True
            self._task.cancel()

    def is_why_cancelled(self) -> bool:
        """Returns whether the lost lease is the only reason; another cancellation must propagate."""
        if not self._is_lost or self._task is None:
            return False
        return self._task.uncancel() <= self._cancelled_before

    def leave(self) -> None:
        self._is_over = True


class _Queue:
    def __init__(self) -> None:
        self.limit = 0
        self.waiters: deque[asyncio.Future[_Lease]] = deque()
        self.serving: asyncio.Task[None] | None = None

    def living(self) -> deque[asyncio.Future[_Lease]]:
        self.waiters = deque(waiter for waiter in self.waiters if not waiter.done())
        return self.waiters


class PostgresSemaphore(DistributedSemaphore):
    """Each process sends one query for all its waiters, only while there are any, and one renewal for all
    its leases. A lease that was not renewed for most of its lifetime counts as lost, whatever the reason.
    """

    def __init__(
        self,
        database: Database,
        *,
        lifetime_s: float = LIFETIME_S,
        answer_s: float = ANSWER_S,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._session = database.admin("slots")
        self._lifetime_s = lifetime_s
        self._answer_s = answer_s
        self._jitter = jitter
        self._queues: dict[str, _Queue] = {}
        self._held: dict[UUID, _Lease] = {}
        self._keeping: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def acquire(self, name: str, limit: int) -> AsyncGenerator[None]:
        async with self._held_by_this_task(await self._wait(name, limit)):
            yield

    @asynccontextmanager
    async def acquire_now(self, name: str, limit: int) -> AsyncGenerator[bool]:
        lease = await run_uncancelled(self._spare(name, limit))
        if lease is None:
            yield False
            return
        async with self._held_by_this_task(lease):
            yield True

    @asynccontextmanager
    async def _held_by_this_task(self, lease: _Lease) -> AsyncGenerator[None]:
        lease.enter()
        try:
            try:
                yield
            finally:
                lease.leave()
                await run_uncancelled(self._release([lease.holder]))
        except asyncio.CancelledError:
            if lease.is_why_cancelled():
                raise SlotLost(name=lease.name) from None
            raise

    async def close(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()

    async def _spare(self, name: str, limit: int) -> _Lease | None:
        queue = self._queues.get(name)
        if queue is not None and queue.living():
            return None
        asked_at_s = asyncio.get_running_loop().time()
        holder = uuid4()
        try:
            rows = await self._ask(LEASE, name, limit, [holder], self._lifetime_s)
        except Unavailable:
            await self._release([holder])  # the lease may exist although its response was lost
            return None
        if not rows:
            return None
        lease = _Lease(holder, name, asked_at_s)
        self._keep(lease)
        return lease

    async def _wait(self, name: str, limit: int) -> _Lease:
        queue = self._queues.setdefault(name, _Queue())
        queue.limit = limit
        waiter: asyncio.Future[_Lease] = asyncio.get_running_loop().create_future()
        queue.waiters.append(waiter)
        if queue.serving is None:
            queue.serving = asyncio.create_task(self._serve(name, queue))
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                # The lease arrived in the moment of the cancellation.
                await run_uncancelled(self._release([waiter.result().holder]))
            raise

    async def _serve(self, name: str, queue: _Queue) -> None:
        try:
            while queue.living():
                await self._deal_out(name, queue)
                if queue.living():
                    # Also after a release in this process: an immediate query would leave no slot to others.
                    await asyncio.sleep(self._jitter(LOOK_INTERVAL_MIN_S, LOOK_INTERVAL_MAX_S))
        except Exception as error:  # noqa: BLE001  the waiters handle it
            for waiter in queue.living():
                waiter.set_exception(error)
        finally:
            # Reset here, not when the task is done: a waiter added in between would not be served.
            queue.serving = None
            if self._queues.get(name) is queue:  # some names are used once, such as an account's
                del self._queues[name]

    async def _deal_out(self, name: str, queue: _Queue) -> None:
        asked_at_s = asyncio.get_running_loop().time()
        holders = [uuid4() for _ in range(min(len(queue.waiters), WAITERS_ASKED_FOR_MAX))]
        try:
            rows = await self._ask(LEASE, name, queue.limit, holders, self._lifetime_s)
        except Unavailable:
            await self._release(holders)  # leases may exist although the response was lost
            raise
        leases = [_Lease(row["holder"], name, asked_at_s) for row in rows]
        waiters = queue.living()
        for lease in leases[: len(waiters)]:
            self._keep(lease)
            waiters.popleft().set_result(lease)
        if surplus := [lease.holder for lease in leases if lease.holder not in self._held]:
            await self._release(surplus)

    async def _release(self, holders: list[UUID]) -> None:
        for holder in holders:
            self._held.pop(holder, None)
        with suppress(Unavailable):  # the lease expires by itself
            await self._ask(RELEASE, holders)

    async def _ask(self, statement: LiteralString, *args: object) -> list[Record]:
        try:
            async with asyncio.timeout(self._answer_s):
                return await self._session.fetch(statement, *args)
        except TimeoutError as error:
            raise DatabaseUnavailable from error

    def _keep(self, lease: _Lease) -> None:
        self._held[lease.holder] = lease
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._renew_until_none_is_held())

    async def _renew_until_none_is_held(self) -> None:
        interval_s = self._lifetime_s / 3
        while self._held:
            await asyncio.sleep(interval_s)
            is_renewed = await self._renew()
            interval_s = self._lifetime_s / (3 if is_renewed else 15)
        self._keeping = None

    async def _renew(self) -> bool:
        asked_at_s = asyncio.get_running_loop().time()
        asked_for = list(self._held.values())
        try:
            rows = await self._ask(RENEW, [lease.holder for lease in asked_for], self._lifetime_s)
        except Exception:  # noqa: BLE001  after any error, a lease that is not renewed expires
            oldest_s = asyncio.get_running_loop().time() - self._lifetime_s * 2 / 3
            self._lose([lease for lease in asked_for if lease.renewed_at_s < oldest_s])
            return False
        renewed = {row["holder"] for row in rows}
        for lease in asked_for:
            lease.renewed_at_s = asked_at_s
        self._lose([lease for lease in asked_for if lease.holder not in renewed])
        return True

    def _lose(self, leases: list[_Lease]) -> None:
        for lease in leases:
            if self._held.pop(lease.holder, None) is not None:  # else it was released meanwhile
                lease.lose()
