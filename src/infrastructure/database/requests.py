from typing import LiteralString

from infrastructure.database.later import Later
from infrastructure.database.sessions import Database
from infrastructure.database.sweeps import Sweep
from shared.middleware.analytics import RequestPoint

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
# Three months are kept.
SWEEP: LiteralString = """
delete from traffic.requests where ctid in (
    select ctid from traffic.requests where at < now() - interval '90 days' limit $1
)
returning true
"""


class PostgresRequestLog:
    def __init__(self, database: Database) -> None:
        self._session = database.admin("request log")
        self._sweep = Sweep(self._session, SWEEP)
        self._points: Later[RequestPoint] = Later("request points", self._write)

    def record(self, point: RequestPoint) -> None:
        self._points.add(point)

    async def _write(self, points: list[RequestPoint]) -> None:
        await self._session.fetch(RECORD, *(list(column) for column in zip(*points, strict=True)))
        self._sweep.now_and_then()

    async def close(self) -> None:
        await self._points.close()
        await self._sweep.close()
