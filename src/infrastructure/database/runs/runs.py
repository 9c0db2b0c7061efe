from __future__ import annotations  # asyncpg's classes are generic in their stubs only

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import LiteralString

import msgspec
from asyncpg import Record

from features.runs.application.ports import (
    BeginOutcome,
    CancelOutcome,
    Executions,
    FinishOutcome,
    PauseOutcome,
    ProgressOutcome,
    RunStarts,
    StartedRun,
)
from features.runs.domain.run import NewRun, Run, RunEnd, StepStarted
from infrastructure.database.clients import AdminClient
from shared.ids import AccountId, RunId

START: LiteralString = """
select a.outcome as result, a.credits_available, (a.run).*
from runs.start($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) as a
"""
FIND: LiteralString = "select * from public.runs where account_id = $1 and id = $2"
REQUEST_CANCEL: LiteralString = "select a.outcome as result, (a.run).* from runs.request_cancel($1, $2) as a"
BEGIN: LiteralString = "select a.outcome as result, (a.run).* from runs.begin($1, $2, $3, $4, $5) as a"
PROGRESS: LiteralString = "select a.outcome as result from runs.progress($1, $2, $3, $4, $5) as a"
PAUSE: LiteralString = "select a.outcome as result from runs.pause($1, $2, $3, $4, $5, $6) as a"
FINISH: LiteralString = "select a.outcome as result from runs.finish($1, $2, $3, $4, $5, $6, $7) as a"
FAIL_STALLED: LiteralString = "select runs.fail_stalled($1, $2, $3) as failed"
MAINTAIN_PAUSED: LiteralString = "select runs.maintain_paused($1, $2) as ended"
PAUSED_FOR_MAX = timedelta(days=7)
LOST_AFTER = timedelta(minutes=1)
STUCK_AFTER = timedelta(minutes=15)  # C-12: last resort; heartbeats detect a lost worker within seconds
LOST_MAX = 100  # per batch, because the credits of the accounts are locked meanwhile
PURGE_ENDED: LiteralString = "select runs.purge_ended($1, $2) as purged"
# Retries reuse the stored results of steps; the retention is short, because they are tenants' data.
WORKFLOW_RETENTION = timedelta(days=7)
WORKFLOWS_MAX = 500


class PostgresRuns(RunStarts, Executions):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def start(self, run: NewRun) -> StartedRun:
        (row,) = await self._session.fetch(
            START,
            run.account_id,
            run.id,
            run.kind,
            msgspec.json.encode(run.subject).decode(),
            run.credits_held,
            run.transaction_type,
            run.queue,
            run.uses_concurrency_slot,
            run.dedup_key,
            run.parent_id,
            run.user_id,
            run.api_key_id,
            run.refund_policy,
            run.retry_of,
        )
        return StartedRun(outcome=row["result"], credits_available=row["credits_available"], run=run_of(row))

    async def request_cancel(self, account_id: AccountId, run_id: RunId) -> tuple[CancelOutcome, Run | None]:
        (row,) = await self._session.fetch(REQUEST_CANCEL, account_id, run_id)
        return row["result"], run_of(row)

    async def find(self, account_id: AccountId, run_id: RunId) -> Run | None:
        rows = await self._session.fetch(FIND, account_id, run_id)
        return run_of(rows[0]) if rows else None

    async def begin(
        self,
        account_id: AccountId,
        run_id: RunId,
        *,
        executor: str,
        attempts_max: int,
        engine_id: str | None = None,
    ) -> tuple[BeginOutcome, Run | None]:
        (row,) = await self._session.fetch(BEGIN, account_id, run_id, executor, attempts_max, engine_id)
        return row["result"], run_of(row)

    async def progress(self, run: Run, percent: int, *, step: str) -> ProgressOutcome:
        (row,) = await self._session.fetch(PROGRESS, run.account_id, run.id, run.fence, percent, step)
        return row["result"]

    async def pause(self, run: Run, percent: int, *, step: str, credits_needed: int) -> PauseOutcome:
        (row,) = await self._session.fetch(
            PAUSE, run.account_id, run.id, run.fence, percent, step, credits_needed
        )
        return row["result"]

    async def finish(
        self, run: Run, ending: RunEnd, deliver: Callable[[], Awaitable[None]] | None = None
    ) -> FinishOutcome:
        async with self._session.transaction():
            (row,) = await self._session.fetch(
                FINISH,
                run.account_id,
                run.id,
                run.fence,
                ending.status,
                ending.outcome,
                ending.error,
                ending.credits_charged,
            )
            if deliver is not None and row["result"] == "done":
                await deliver()
        return row["result"]

    async def fail_stalled(self) -> int:
        (row,) = await self._session.fetch(FAIL_STALLED, LOST_AFTER, STUCK_AFTER, LOST_MAX)
        return row["failed"]

    async def maintain_paused(self) -> int:
        (row,) = await self._session.fetch(MAINTAIN_PAUSED, PAUSED_FOR_MAX, LOST_MAX)
        return row["ended"]

    async def purge_ended(self) -> int:
        (row,) = await self._session.fetch(PURGE_ENDED, WORKFLOW_RETENTION, WORKFLOWS_MAX)
        return row["purged"]


def run_of(row: Record) -> Run | None:
    if row["id"] is None:
        return None
    columns = {name: row[name] for name in Run.__struct_fields__ if name not in {"subject", "steps"}}
    return Run(
        subject=msgspec.json.decode(row["subject"]),
        steps=msgspec.json.decode(row["steps"], type=tuple[StepStarted, ...]),
        **columns,
    )
