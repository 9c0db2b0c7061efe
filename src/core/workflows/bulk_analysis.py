"""Workflow of a bulk analysis: starts one child run per profile and waits for them.

When credits run out and no item is active, the run pauses and leaves its worker: the DBOS workflow returns,
and new credits enqueue the run again (``runs.resume_paused``).

All state is in the rows of the items, so there are no steps to replay: after a crash the workflow reads the
rows and continues.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal

import msgspec

from core.engine.run_context import RunCancelled, RunContext
from core.engine.workflow import SUSPENDED, RunResult, Suspended
from features.analysis.application.ports import BulkItems, Prices
from features.analysis.domain.bulk import (
    CANCELLING,
    WAITING_FOR_CREDITS,
    BulkItem,
    BulkProgress,
    Counts,
    item_run_id,
    items_to_start,
    progress_of,
)
from features.analysis.domain.outcomes import cancellation_outcome
from features.analysis.domain.requests import NewBulkAnalysis
from features.runs.application.ports import RunStarts
from features.runs.domain.refunds import settled
from features.runs.domain.run import NewRun, Run
from shared.retry import until_database_answers

RUNS_QUEUE = "runs"
TRANSACTION_TYPE = "analysis"
# A child run that ends in this process wakes the bulk run; the others are found by polling.
POLL_INTERVAL_S = 0.25
CREDITS_POLL_INTERVAL_S = 1.0
# filled: items were started up to the limit; short: credits are missing; paused: the run waits for credits.
StartResult = Literal["filled", "short", "paused"]


@dataclass(frozen=True, slots=True)
class BulkWorkflow:
    """``transaction`` opens a transaction of the service role; repository calls inside it join."""

    runs: RunStarts
    items: BulkItems
    prices: Prices
    transaction: Callable[[], AbstractAsyncContextManager[None]]

    async def run(self, context: RunContext) -> RunResult | Suspended:
        try:
            is_paused = await self._analyse_all(context)
        except RunCancelled as cancelled:
            await self._cancel_items(context)
            return RunResult(settled(context.run, "cancelled", cancellation_outcome(cancelled.step)))
        return SUSPENDED if is_paused else RunResult(settled(context.run, "completed", "completed"))

    async def _analyse_all(self, context: RunContext) -> bool:
        """Return True when the run has paused, False when every item has ended."""
        priced = await self._priced(context.run)
        progress, reported = BulkProgress(), None
        while (counts := await self._settle(context.run)).ended < counts.total:
            context.check_cancelled(progress.step)
            progress = progress_of(counts, is_short=progress.is_short)
            result = await self._start_items(context, priced, counts, progress)
            if result == "paused":
                return True
            progress = progress_of(counts, is_short=result == "short")
            if progress != reported:
                await context.report(progress.step, progress.percent)
                reported = progress
            interval_s = CREDITS_POLL_INTERVAL_S if progress.is_short else POLL_INTERVAL_S
            await context.pause(interval_s, step=progress.step)
        return False

    async def _start_items(
        self, context: RunContext, priced: "PricedBulk", counts: Counts, progress: BulkProgress
    ) -> StartResult:
        items_max = items_to_start(counts)
        if not items_max:
            return "filled"
        is_idle = counts.active == 0
        return await until_database_answers(
            lambda: self._start_next(context, priced, progress, items_max, is_idle=is_idle)
        )

    async def _start_next(
        self,
        context: RunContext,
        priced: "PricedBulk",
        progress: BulkProgress,
        items_max: int,
        *,
        is_idle: bool,
    ) -> StartResult:
        """``is_idle``: no item is active, so the run pauses when the first of these items cannot be paid."""
        run = context.run
        async with self.transaction():
            # Fails if this worker has lost its fencing token.
            await context.report_within(progress.step, progress.percent)
            for item in await self.items.unstarted(run.account_id, run.id, items_max):
                started = await self.runs.start(priced.item_run(run, item))
                if started.run is not None:
                    # The new run, the run started before a crash, or an equal run of another request.
                    await self.items.mark_started(run.account_id, run.id, item.position, started.run.id)
                    is_idle = False
                elif started.outcome == "insufficient":
                    return await self._pause_if_idle(context, priced, progress, is_idle=is_idle)
                else:
                    # A limit of the API key applies to all remaining items.
                    await self.items.end_unstarted(run.account_id, run.id, "skipped", started.outcome)
                    return "filled"
        return "filled"

    async def _pause_if_idle(
        self, context: RunContext, priced: "PricedBulk", progress: BulkProgress, *, is_idle: bool
    ) -> StartResult:
        """Wait while items are active, because they may release credits; otherwise pause the run."""
        if not is_idle:
            return "short"
        await context.suspend_within(
            WAITING_FOR_CREDITS, progress.percent, credits_needed=priced.credits_each
        )
        return "paused"

    async def _cancel_items(self, context: RunContext) -> None:
        """Start no more items, cancel the active child runs and wait for their end."""
        await until_database_answers(lambda: self._request_cancel(context))
        while (counts := await self._settle(context.run)).active:
            await context.report(CANCELLING, progress_of(counts).percent)
            await context.wait(POLL_INTERVAL_S)

    async def _request_cancel(self, context: RunContext) -> None:
        run = context.run
        async with self.transaction():
            await context.report_within(CANCELLING, 0)
            await self.items.end_unstarted(run.account_id, run.id, "cancelled", "cancelled_queued")
            # The cancel request reached only the child runs that existed then; this call reaches later ones.
            await self.runs.request_cancel(run.account_id, run.id)

    async def _settle(self, run: Run) -> Counts:
        return await until_database_answers(lambda: self.items.settle(run.account_id, run.id))

    async def _priced(self, run: Run) -> "PricedBulk":
        bulk = msgspec.convert(run.subject, NewBulkAnalysis)
        return PricedBulk(bulk, await until_database_answers(lambda: self.prices.credits(bulk.analysis_type)))


@dataclass(frozen=True, slots=True)
class PricedBulk:
    bulk: NewBulkAnalysis
    credits_each: int

    def item_run(self, bulk_run: Run, item: BulkItem) -> NewRun:
        analysis = self.bulk.of(item.username)
        return NewRun(
            account_id=bulk_run.account_id,
            id=item_run_id(bulk_run.id, item.position),
            kind=analysis.kind,
            subject=analysis.subject,
            credits_held=self.credits_each,
            transaction_type=TRANSACTION_TYPE,
            queue=RUNS_QUEUE,
            dedup_key=analysis.dedup_key,
            parent_id=bulk_run.id,
            user_id=bulk_run.user_id,
            api_key_id=bulk_run.api_key_id,
            refund_policy=bulk_run.refund_policy,
        )
