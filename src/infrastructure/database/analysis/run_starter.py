"""Atomic start of an analysis: credit hold, run and queue entry."""

import math
from typing import LiteralString

import msgspec
from asyncpg import Record

from features.analysis.application.ports import AnalysisRuns, BulkItems, RunPayer, StartedRun
from features.analysis.domain.bulk import Checked
from features.analysis.domain.errors import KeyCannotSpend, LightLimitReached
from features.analysis.domain.requests import BULK_KIND, NewAnalysis, NewBulkAnalysis
from features.business.domain.errors import BusinessProfileNotFound
from features.credits.domain.errors import ApiKeyCapReached, InsufficientCredits
from features.runs.application.ports import RunStarts
from features.runs.domain.refunds import REFUND_POLICY_VERSION
from features.runs.domain.run import NewRun
from infrastructure.database.clients import AdminClient
from shared.caller import AccountNotFound
from shared.errors import DomainError
from shared.ids import RunId

START: LiteralString = "select * from runs.start_analysis($1, $2, $3, $4, $5, $6, $7, $8, $9)"
STARTED = frozenset({"started", "repeated", "duplicate"})


class PostgresAnalysisRuns(AnalysisRuns):
    def __init__(self, session: AdminClient, runs: RunStarts, items: BulkItems) -> None:
        self._session = session
        self._runs = runs
        self._items = items

    async def start(
        self, run_id: RunId, payer: RunPayer, order: NewAnalysis, *, credits_held: int
    ) -> StartedRun:
        (row,) = await self._session.fetch(START, *start_arguments(run_id, payer, order, credits_held))
        return started_run(row, credits_held)

    async def start_bulk(
        self, run_id: RunId, payer: RunPayer, order: NewBulkAnalysis, rows: Checked, *, credits_each: int
    ) -> StartedRun:
        async with self._session.transaction():
            started = await self._runs.start(
                NewRun(
                    account_id=payer.account_id,
                    id=run_id,
                    kind=BULK_KIND,
                    subject=order.subject,
                    credits_held=0,  # each item holds its own credits
                    transaction_type="analysis",
                    queue="bulk",
                    uses_concurrency_slot=False,
                    user_id=payer.user_id,
                    api_key_id=payer.api_key_id,
                    refund_policy=REFUND_POLICY_VERSION,
                )
            )
            if started.run is None:
                raise AccountNotFound
            available = started.credits_available or 0  # read under the lock that runs.start holds
            if started.outcome == "started" and available < credits_each:
                raise InsufficientCredits(needed=credits_each, available=available)
            await self._items.add(payer.account_id, run_id, rows.usernames, rows.rejections)
        return StartedRun(run_id=started.run.id, status=started.run.status, credits_held=0)


def start_arguments(
    run_id: RunId, payer: RunPayer, order: NewAnalysis, credits_held: int
) -> tuple[object, ...]:
    """Arguments of runs.start_analysis."""
    return (
        payer.account_id,
        run_id,
        order.kind,
        msgspec.json.encode(order.subject).decode(),
        credits_held,
        order.dedup_key,
        payer.user_id,
        payer.api_key_id,
        REFUND_POLICY_VERSION,
    )


def started_run(row: Record, credits_held: int) -> StartedRun:
    """Converts a row of runs.start_analysis. Raises the error of a refused start."""
    outcome: str = row["outcome"]
    if outcome not in STARTED:
        raise start_refusal(outcome, row, credits_held)
    return StartedRun(
        run_id=row["run_id"],
        status=row["status"],
        credits_held=row["credits_held"],
        is_duplicate=outcome == "duplicate",
    )


def start_refusal(outcome: str, row: Record, credits_needed: int) -> DomainError:
    """The error for an outcome of runs.start_analysis or runs.retry that started nothing."""
    match outcome:
        case "insufficient":
            return InsufficientCredits(needed=credits_needed, available=row["credits_available"])
        case "key_capped":
            return ApiKeyCapReached(needed=credits_needed, cap=row["bound"])
        case "test_key":
            return KeyCannotSpend()
        case "unknown_business":
            return BusinessProfileNotFound()
        case "light_limited":
            return LightLimitReached(limit=row["bound"], retry_after_s=max(1, math.ceil(row["wait_s"])))
        case _:
            # The key or the account was removed during the request; any other outcome is a bug.
            assert outcome in {"unknown_key", "unknown_account"}, outcome
            return AccountNotFound()
