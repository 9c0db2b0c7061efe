"""Workflow of a bulk analysis: starts one child run per profile and waits for them.

When credits run out and no item is active, the run pauses and leaves its worker: the DBOS workflow returns,
and new credits enqueue the run again (``runs.resume_paused``).

All state is in the rows of the items, so there are no steps to replay: after a crash the workflow reads the
rows and continues. The id of a child run is derived from the bulk's id and the item's position, so no child
run is started twice.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal
from uuid import uuid5

import msgspec

from core.engine.run_context import RunCancelled, RunContext
from core.engine.workflow import SUSPENDED, RunResult, Suspended
from core.workflows.endings import cancelled, ended
from features.analysis.application.ports import BulkItems, Prices
from features.analysis.domain.bulk import BulkItem, Counts
from features.analysis.domain.requests import NewBulkAnalysis
from features.runs.application.ports import RunStarts
from features.runs.domain.run import NewRun, Run
from shared.ids import RunId
from shared.retry import until_database_answers

RUNS_QUEUE = "runs"
TRANSACTION_TYPE = "analysis"
# Ten runs scrape at a time, over all bulks. A few more are started, so that no scraping slot is idle while
# the next run is in the queue or waits for a model.
STARTED_MAX = 15
BATCH_SIZE = 10
# A child run that ends in this process wakes the bulk; the others are found by polling.
LOOK_INTERVAL_S = 0.25
CREDITS_INTERVAL_S = 1.0
WAITING_FOR_CREDITS = "waiting_for_credits"
CANCELLING = "cancelling"
GIVEN_UP = "cancelled_queued"  # outcome of items whose run was never started
SHORT = "insufficient"
# done: items were started up to the limit; short: credits are missing; paused: the run waits for credits.
Filling = Literal["done", "short", "paused"]


@dataclass(frozen=True, slots=True)
class BulkWorkflow:
    """``transaction`` opens a transaction of the service role; repository calls inside it join."""

    runs: RunStarts
    items: BulkItems
    prices: Prices
    transaction: Callable[[], AbstractAsyncContextManager[None]]

    async def carry_out(self, work: RunContext) -> RunResult | Suspended:
        try:
            is_paused = await self._work_through(work)
        except RunCancelled as cancellation:
            await self._wind_down(work)
            return RunResult(cancelled(work.run, cancellation))
        return SUSPENDED if is_paused else RunResult(ended(work.run, "completed", "completed"))

    async def _work_through(self, work: RunContext) -> bool:
        """Return True when the run has paused, False when every item has ended."""
        order = await self._priced(work.run)
        now, told = Progress(), None
        while (counts := await self._settle(work.run)).ended < counts.total:
            work.check_cancelled(now.place)
            now = _progress(counts, is_short=now.is_short)
            filling = await self._fill(work, order, counts, now)
            if filling == "paused":
                return True
            now = _progress(counts, is_short=filling == "short")
            if now != told:
                await work.report(now.place, now.percent)
                told = now
            await work.pause(CREDITS_INTERVAL_S if now.is_short else LOOK_INTERVAL_S, step=now.place)
        return False

    async def _fill(self, work: RunContext, order: "PricedOrder", counts: Counts, now: "Progress") -> Filling:
        """Start waiting items up to STARTED_MAX."""
        waiting = counts.total - counts.ended - counts.at_work
        room = min(STARTED_MAX - counts.at_work, waiting)
        if room <= 0:
            return "done"
        is_idle = counts.at_work == 0
        return await until_database_answers(lambda: self._start_next(work, order, now, room, is_idle=is_idle))

    async def _start_next(
        self, work: RunContext, order: "PricedOrder", now: "Progress", items_max: int, *, is_idle: bool
    ) -> Filling:
        """``is_idle``: no item is active, so the run pauses when the first of these items cannot be paid."""
        run = work.run
        async with self.transaction():
            # Fails if this worker has lost its fencing token.
            await work.report_within(now.place, now.percent)
            for item in await self.items.unstarted(run.account_id, run.id, items_max):
                started = await self.runs.start(order.item_run(run, item))
                if started.run is not None:
                    # The new run, the run started before a crash, or an equal run of another request.
                    await self.items.started(run.account_id, run.id, item.position, started.run.id)
                    is_idle = False
                elif started.outcome == SHORT:
                    return await self._short(work, order, now, is_idle=is_idle)
                else:
                    # A limit of the API key applies to all remaining items.
                    await self.items.give_up(run.account_id, run.id, "skipped", started.outcome)
                    return "done"
        return "done"

    async def _short(
        self, work: RunContext, order: "PricedOrder", now: "Progress", *, is_idle: bool
    ) -> Filling:
        """Wait while items are active, because they may release credits; otherwise pause the run."""
        if not is_idle:
            return "short"
        await work.suspend_within(WAITING_FOR_CREDITS, now.percent, credits_needed=order.credits_each)
        return "paused"

    async def _wind_down(self, work: RunContext) -> None:
        """Start no more items, cancel the active child runs and wait for their end."""
        await until_database_answers(lambda: self._give_up(work))
        while (counts := await self._settle(work.run)).at_work:
            await work.report(CANCELLING, _progress(counts).percent)
            await work.wait(LOOK_INTERVAL_S)

    async def _give_up(self, work: RunContext) -> None:
        run = work.run
        async with self.transaction():
            await work.report_within(CANCELLING, 0)
            await self.items.give_up(run.account_id, run.id, "cancelled", GIVEN_UP)
            # The cancel request reached only the child runs that existed then; this call reaches later ones.
            await self.runs.request_cancel(run.account_id, run.id)

    async def _settle(self, run: Run) -> Counts:
        return await until_database_answers(lambda: self.items.settle(run.account_id, run.id))

    async def _priced(self, run: Run) -> "PricedOrder":
        order = msgspec.convert(run.subject, NewBulkAnalysis)
        return PricedOrder(
            order, await until_database_answers(lambda: self.prices.credits(order.analysis_type))
        )


@dataclass(frozen=True, slots=True)
class PricedOrder:
    order: NewBulkAnalysis
    credits_each: int

    def item_run(self, bulk: Run, item: BulkItem) -> NewRun:
        order = self.order.of(item.username)
        return NewRun(
            account_id=bulk.account_id,
            id=RunId(uuid5(bulk.id, str(item.position))),
            kind=order.kind,
            subject=order.subject,
            credits_held=self.credits_each,
            transaction_type=TRANSACTION_TYPE,
            queue=RUNS_QUEUE,
            dedup_key=order.dedup_key,
            parent_id=bulk.id,
            user_id=bulk.user_id,
            api_key_id=bulk.api_key_id,
            refund_policy=bulk.refund_policy,
        )


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    place: str = "batch 1 of 1"
    percent: int = 0
    is_short: bool = False


def _progress(counts: Counts, *, is_short: bool = False) -> Progress:
    percent = 100 * counts.ended // counts.total
    batches = -(-counts.total // BATCH_SIZE)
    place = f"batch {min(counts.ended // BATCH_SIZE + 1, batches)} of {batches}"
    return Progress(place=WAITING_FOR_CREDITS if is_short else place, percent=percent, is_short=is_short)
