"""What guards the door, kept where every process sees it."""

import time
from collections import Counter
from typing import LiteralString
from uuid import UUID

from infrastructure.database.batches import Batches
from infrastructure.database.later import Later
from infrastructure.database.sessions import Database
from shared.middleware.analytics import RequestPoint
from shared.middleware.idempotency import LOCK_S, RETENTION_S, Attempts, Begun
from shared.middleware.rate_limits import FREE, Limit, Limits, Verdict, Windows

LIMITS: LiteralString = "select plan, route_class, requests_max, window_s from public.rate_limits"
TAKE: LiteralString = "select * from traffic.take($1, $2, $3, $4)"
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
select * from unnest(
    $1::timestamptz[], $2::text[], $3::text[], $4::smallint[], $5::real[], $6::uuid[], $7::text[],
    $8::uuid[], $9::text[]
)
"""
LIMITS_REMEMBERED_FOR_S = 30.0


class PostgresLimits(Limits):
    """The table is small and remembered; a change is taken up within half a minute."""

    def __init__(self, database: Database) -> None:
        self._session = database.admin("rate limits")
        self._table: dict[tuple[str, str], Limit] = {}
        self._until_s = 0.0

    async def find(self, plan: str, route_class: str) -> Limit | None:
        if time.monotonic() >= self._until_s:
            self._until_s = time.monotonic() + LIMITS_REMEMBERED_FOR_S
            self._table = {
                (row["plan"], row["route_class"]): Limit(
                    row["route_class"], row["requests_max"], row["window_s"]
                )
                for row in await self._session.fetch(LIMITS)
            }
        return self._table.get((plan, route_class)) or self._table.get((FREE, route_class))


class PostgresWindows(Windows):
    """Requests that arrive together share a round trip, and those of one client a row's update."""

    def __init__(self, database: Database) -> None:
        self._session = database.admin("rate windows")
        self._batches = Batches(self._take_all)

    async def take(self, key: str, limit: Limit) -> Verdict:
        return await self._batches.ask((key, limit))

    async def _take_all(self, requests: list[tuple[str, Limit]]) -> list[Verdict]:
        wanted = Counter(key for key, _ in requests)
        limits = dict(requests)
        keys = sorted(wanted)  # in one order everywhere, so that rivals cannot deadlock
        rows = await self._session.fetch(
            TAKE,
            keys,
            [wanted[key] for key in keys],
            [limits[key].requests_max for key in keys],
            [limits[key].window_s for key in keys],
        )
        # granted, remaining, reset_s; what the first ones of a client leave is told to the next
        left = {key: list(row) for key, row in zip(keys, rows, strict=True)}
        return [_one_of(left[key]) for key, _ in requests]


def _one_of(shares: list[float]) -> Verdict:
    granted, remaining, reset_s = shares
    if granted < 1:
        return Verdict(False, 0, reset_s)
    shares[0] = granted - 1
    return Verdict(True, int(remaining + granted - 1), reset_s)


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
