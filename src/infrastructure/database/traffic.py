"""What guards the door, kept where every process sees it."""

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import LiteralString
from uuid import UUID

from infrastructure.batches import Batches
from infrastructure.database.later import Later
from infrastructure.database.sessions import Database
from infrastructure.limits.store import Request, Share, Store, dealt_out, grouped
from shared.errors import Unavailable
from shared.middleware.analytics import RequestPoint
from shared.middleware.idempotency import LOCK_S, RETENTION_S, Attempts, Begun
from shared.middleware.rate_limits import FREE, Limit, Limits, Verdict

LIMITS: LiteralString = "select plan, route_class, requests_max, window_s from public.rate_limits"
TAKE: LiteralString = "select * from traffic.take($1, $2, $3, $4)"
# Rows that a request holds are skipped: they are in use again.
SWEEP: LiteralString = """
delete from traffic.rate_windows where key in (
    select key from traffic.rate_windows where expires_at < now() limit $1 for update skip locked
)
returning true
"""
BEGIN: LiteralString = "select * from traffic.begin_attempt($1, $2, $3, $4, $5)"
FINISH: LiteralString = """
update traffic.idempotency_keys set answer = $3 where id = $1 and attempt = $2
"""
GIVE_UP: LiteralString = """
update traffic.idempotency_keys set locked_until = clock_timestamp()
where id = $1 and attempt = $2 and answer is null
"""
RECORD: LiteralString = """
insert into traffic.requests (
    at, method, route, status, duration_ms, account_id, principal_kind, principal_id, request_id
)
select to_timestamp(p.at_s), p.method, p.route, p.status, p.duration_ms, p.account_id, p.principal_kind,
    p.principal_id, p.request_id
from unnest(
    $1::double precision[], $2::text[], $3::text[], $4::smallint[], $5::real[], $6::uuid[], $7::text[],
    $8::uuid[], $9::text[]
) as p (
    at_s, method, route, status, duration_ms, account_id, principal_kind, principal_id, request_id
)
"""
LIMITS_REMEMBERED_FOR_S = 30.0
SWEEP_INTERVAL_S = 300.0
SWEEP_ROWS_MAX = 5_000


class PostgresLimits(Limits):
    """The table is small and remembered; a change is taken up within half a minute."""

    def __init__(self, database: Database, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._session = database.admin("rate limits")
        self._now_s = now_s
        self._table: dict[tuple[str, str], Limit] = {}
        self._until_s = -math.inf
        self._reading = asyncio.Lock()

    async def find(self, plan: str, route_class: str) -> Limit | None:
        if self._now_s() >= self._until_s:
            await self._refresh()
        return self._table.get((plan, route_class)) or self._table.get((FREE, route_class))

    async def _refresh(self) -> None:
        """Without limits nobody passes; with old ones nobody waits."""
        if self._table and self._reading.locked():
            return
        async with self._reading:
            if self._now_s() < self._until_s:
                return
            try:
                rows = await self._session.fetch(LIMITS)
            except Unavailable:
                if not self._table:
                    raise
                return
            self._table = {
                (row["plan"], row["route_class"]): Limit(
                    row["route_class"], row["requests_max"], row["window_s"]
                )
                for row in rows
            }
            self._until_s = self._now_s() + LIMITS_REMEMBERED_FOR_S


class PostgresWindows(Store):
    """Requests that arrive together share a round trip, and those of one client a row's update. Now and
    then what has expired is swept out, beside the requests.
    """

    def __init__(self, database: Database, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._session = database.admin("rate windows")
        self._now_s = now_s
        self._batches = Batches(self._take_all)
        self._sweep_at_s = now_s() + SWEEP_INTERVAL_S
        self._sweeping: asyncio.Task[None] | None = None

    async def take(self, key: str, limit: Limit) -> Verdict:
        return await self._batches.ask((key, limit))

    async def _take_all(self, requests: list[Request]) -> list[Verdict]:
        wanted = grouped(requests)  # rivals in the order of the keys cannot deadlock
        rows = await self._session.fetch(
            TAKE,
            [key for (key, _), _ in wanted],
            [count for _, count in wanted],
            [limit.requests_max for (_, limit), _ in wanted],
            [limit.window_s for (_, limit), _ in wanted],
        )
        if self._now_s() >= self._sweep_at_s:
            self._sweep_at_s = self._now_s() + SWEEP_INTERVAL_S
            self._sweeping = asyncio.create_task(self._sweep())
        return dealt_out(
            requests, {request: Share(*row) for (request, _), row in zip(wanted, rows, strict=True)}
        )

    async def _sweep(self) -> None:
        with suppress(Unavailable):  # the next one will
            while len(await self._session.fetch(SWEEP, SWEEP_ROWS_MAX)) == SWEEP_ROWS_MAX:
                pass

    async def state(self) -> str:
        return "PostgreSQL"

    async def close(self) -> None:
        if self._sweeping is not None:
            await self._sweeping


class PostgresAttempts(Attempts):
    def __init__(self, database: Database) -> None:
        self._session = database.admin("idempotency keys")

    async def begin(self, key_id: bytes, fingerprint: bytes, attempt: UUID) -> Begun:
        (row,) = await self._session.fetch(BEGIN, key_id, fingerprint, attempt, LOCK_S, RETENTION_S)
        return Begun(row["outcome"], row["effect_id"], row["answer"])

    async def finish(self, key_id: bytes, attempt: UUID, answer: bytes) -> None:
        await self._session.fetch(FINISH, key_id, attempt, answer)

    async def give_up(self, key_id: bytes, attempt: UUID) -> None:
        await self._session.fetch(GIVE_UP, key_id, attempt)


class PostgresRequestLog:
    def __init__(self, database: Database) -> None:
        self._session = database.admin("request log")
        self._points: Later[RequestPoint] = Later("request points", self._write)

    def record(self, point: RequestPoint) -> None:
        self._points.add(point)

    async def _write(self, points: list[RequestPoint]) -> None:
        await self._session.fetch(RECORD, *(list(column) for column in zip(*points, strict=True)))

    async def close(self) -> None:
        await self._points.close()
