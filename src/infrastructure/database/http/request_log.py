"""Request log with a row per request, or a count per minute for requests without an account."""

from typing import LiteralString

from infrastructure.database.clients import AdminClient, Database
from infrastructure.database.write_behind import WriteBehindQueue
from shared.middleware.request_log import RequestLogEntry, is_only_counted

RECORD: LiteralString = """
insert into traffic.requests (
    at, method, route, status, duration_ms, account_id, principal_kind, principal_id, request_id, code
)
select to_timestamp(p.at_s), p.method, p.route, p.status, p.duration_ms, p.account_id, p.principal_kind,
    p.principal_id, p.request_id, p.code
from unnest(
    $1::double precision[], $2::text[], $3::text[], $4::smallint[], $5::real[], $6::uuid[], $7::text[],
    $8::uuid[], $9::text[], $10::text[]
) as p (
    at_s, method, route, status, duration_ms, account_id, principal_kind, principal_id, request_id,
    code
)
"""
# Ordered by the key, so that processes that write the same rows cannot deadlock.
COUNT: LiteralString = """
insert into traffic.request_counts as c (minute, method, route, status, code, requests)
select to_timestamp(n.at_s), n.method, n.route, n.status, n.code, n.requests
from unnest($1::bigint[], $2::text[], $3::text[], $4::smallint[], $5::text[], $6::bigint[])
    as n (at_s, method, route, status, code, requests)
order by 1, 2, 3, 4, 5
on conflict (minute, method, route, status, code) do update set requests = c.requests + excluded.requests
"""
MINUTE_S = 60
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER_METHOD = "OTHER"  # a client can send any method name
COUNTS_MAX = 10_000  # limit while the database is unavailable; further keys are not counted

Key = tuple[int, str, str, int, str]


class RequestCounts:
    """Counts that are added in memory and written about once per second."""

    def __init__(self, session: AdminClient) -> None:
        self._session = session
        self._counts: dict[Key, int] = {}
        self._keys: WriteBehindQueue[Key] = WriteBehindQueue("request counts", self._write)

    def add(self, point: RequestLogEntry) -> None:
        minute_s = int(point.at_s) // MINUTE_S * MINUTE_S
        method = point.method if point.method in METHODS else OTHER_METHOD
        key = (minute_s, method, point.route, point.status, point.code or "")
        count = self._counts.get(key, 0)
        if not count:
            if len(self._counts) >= COUNTS_MAX:
                return
            self._keys.add(key)
        self._counts[key] = count + 1

    async def _write(self, keys: list[Key]) -> None:
        counts = {key: self._counts.pop(key) for key in sorted(set(keys)) if key in self._counts}
        rows = [(*key, count) for key, count in counts.items()]
        try:
            if rows:
                await self._session.fetch(COUNT, *(list(column) for column in zip(*rows, strict=True)))
        except Exception:
            for key, count in counts.items():
                self._counts[key] = self._counts.get(key, 0) + count
            raise

    async def close(self) -> None:
        await self._keys.close()


class PostgresRequestLog:
    def __init__(self, database: Database) -> None:
        self._session = database.admin("request log")
        self._points: WriteBehindQueue[RequestLogEntry] = WriteBehindQueue("request points", self._write)
        self._counts = RequestCounts(self._session)

    def record(self, point: RequestLogEntry) -> None:
        if is_only_counted(point):
            self._counts.add(point)
        else:
            self._points.add(point)

    async def _write(self, points: list[RequestLogEntry]) -> None:
        await self._session.fetch(RECORD, *(list(column) for column in zip(*points, strict=True)))

    async def close(self) -> None:
        await self._points.close()
        await self._counts.close()
