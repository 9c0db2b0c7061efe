from __future__ import annotations  # asyncpg's classes are generic in their stubs only

from datetime import datetime
from typing import LiteralString
from uuid import UUID

import msgspec
from asyncpg import Record

from features.operations.application.ports import (
    Claim,
    ClaimOutcome,
    CronBeginOutcome,
    CronClaims,
    CronExecutions,
    CronHistory,
)
from features.operations.domain.jobs import CronRun, JobFinding, Report
from infrastructure.database.clients import AdminClient
from shared.pagination import Cursor

CLAIM: LiteralString = (
    "select a.outcome as result, (a.run).* from scheduling.claim($1, $2, $3, $4, $5, $6) as a"
)
BEGIN: LiteralString = "select a.outcome as result, (a.run).* from scheduling.begin($1, $2, $3, $4) as a"
FINISH: LiteralString = "select scheduling.finish($1, $2, $3, $4, $5, $6, $7) as is_ended"
FAIL_STALLED: LiteralString = "select scheduling.fail_stalled() as failed"
NOW: LiteralString = "select clock_timestamp() as now"
FIND: LiteralString = "select * from public.cron_runs where job = $1 and id = $2"
LAST_RUNS: LiteralString = """
select l.* from (select distinct job from public.cron_runs) as j
cross join lateral (
    select * from public.cron_runs as c where c.job = j.job and not c.is_dry_run
    order by c.slot desc, c.id desc limit 1
) as l
"""
PAGE: LiteralString = """
select * from public.cron_runs as c
where c.job = $1 and ($2::timestamptz is null or (c.slot, c.id) < ($2, $3::uuid))
order by c.slot desc, c.id desc limit $4
"""


class PostgresCron(CronClaims, CronExecutions, CronHistory):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def claim(self, claim: Claim) -> tuple[ClaimOutcome, CronRun | None]:
        (row,) = await self._session.fetch(
            CLAIM,
            claim.job,
            claim.slot,
            claim.id,
            claim.trigger,
            claim.is_dry_run,
            claim.requested_by,
        )
        return row["result"], _run_or_none(row)

    async def begin(
        self, job: str, slot: datetime, *, executor: str, attempts_max: int
    ) -> tuple[CronBeginOutcome, CronRun | None]:
        (row,) = await self._session.fetch(BEGIN, job, slot, executor, attempts_max)
        return row["result"], _run_or_none(row)

    async def finish(self, run: CronRun, report: Report, *, error: str | None) -> bool:
        (row,) = await self._session.fetch(
            FINISH,
            run.job,
            run.slot,
            run.attempts,
            "failed" if error else "completed",
            msgspec.json.encode(report.counts).decode(),
            msgspec.json.encode(report.findings).decode(),
            error,
        )
        return row["is_ended"]

    async def fail_stalled(self) -> int:
        (row,) = await self._session.fetch(FAIL_STALLED)
        return row["failed"]

    async def now(self) -> datetime:
        (row,) = await self._session.fetch(NOW)
        return row["now"]

    async def find(self, job: str, run_id: UUID) -> CronRun | None:
        rows = await self._session.fetch(FIND, job, run_id)
        return _run(rows[0]) if rows else None

    async def last_runs(self) -> dict[str, CronRun]:
        return {row["job"]: _run(row) for row in await self._session.fetch(LAST_RUNS)}

    async def page(self, job: str, *, before: Cursor | None, runs_max: int) -> list[CronRun]:
        at, run_id = (before.at, before.id) if before else (None, None)
        return [_run(row) for row in await self._session.fetch(PAGE, job, at, run_id, runs_max)]


def _run_or_none(row: Record) -> CronRun | None:
    return None if row["id"] is None else _run(row)


def _run(row: Record) -> CronRun:
    columns = {name: row[name] for name in CronRun.__struct_fields__ if name not in {"counts", "findings"}}
    return CronRun(
        counts=msgspec.json.decode(row["counts"], type=dict[str, int]),
        findings=msgspec.json.decode(row["findings"], type=tuple[JobFinding, ...]),
        **columns,
    )
