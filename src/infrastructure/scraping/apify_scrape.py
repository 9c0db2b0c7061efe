"""One scrape of a profile via Apify, with cleanup of every run that it started."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from uuid import uuid4

import msgspec
import structlog

from infrastructure.scraping.apify_port import ActorRun, ActorRunRequest, ActorRuns, DatasetItems
from infrastructure.scraping.cost_recorder import ScrapeCostRecorder
from infrastructure.scraping.errors import ScrapeError, ScrapeRetryLimits, Sleep
from shared.cancellation import run_uncancelled

T = TypeVar("T")

POLL_S = 20.0
CLEAR_UP_S = 12.0
LATECOMERS_S = 1.0  # delay until a run with an interrupted start is listed
SECOND_READING_S = 2.0  # delay before an empty dataset is read again
ATTEMPTS_TO_ABORT = 2

log: structlog.stdlib.BoundLogger = structlog.get_logger("scraping")


class ScrapeReading(msgspec.Struct, Generic[T], frozen=True):
    value: T
    outcome: str
    posts_found: int


class ApifyScrape:
    """Must be closed in every case: ``close`` stops all runs and records each run that was or may have been
    started.
    """

    def __init__(
        self,
        runs: ActorRuns,
        receipts: ScrapeCostRecorder,
        patience: ScrapeRetryLimits,
        *,
        sleep: Sleep,
        poll_s: float = POLL_S,
    ) -> None:
        self._runs = runs
        self._receipts = receipts
        self._patience = patience
        self._sleep = sleep
        self._poll_s = poll_s
        self._mark = uuid4().hex
        self._run: ActorRun | None = None
        self._known: set[str] = set()
        self._strays: list[ActorRun] = []
        self._unanswered: str | None = None  # the actor of a start request without a response
        self._uncertain: set[str] = set()  # all actors that had such a request
        self._since = receipts.now()
        self._begun_at_s = time.monotonic()
        self._has_written = False

    async def carry_out(
        self, order: ActorRunRequest, read: Callable[[list[Any]], ScrapeReading[T]], *, items_max: int
    ) -> ScrapeReading[T]:
        """Raises ScrapeError when no retry is left."""
        while True:
            try:
                return await self._attempt(order, read, items_max)
            except ScrapeError as trouble:
                await self._patience.after(trouble)

    async def _attempt(
        self, order: ActorRunRequest, read: Callable[[list[Any]], ScrapeReading[T]], items_max: int
    ) -> ScrapeReading[T]:
        """Resumes the previous attempt: a run in progress is not started again."""
        run = self._run or await self._lost() or await self._start(order)
        while not run.is_over:
            run = self._run = await self._runs.wait(run.id, wait_s=self._poll_s)
        if run.status != "SUCCEEDED":
            await self._end("timeout" if run.status == "TIMED-OUT" else "unavailable")
            raise ScrapeError("unavailable", detail=run.status)
        items = await self._items(run, items_max)
        try:
            reading = read(items.found)
        except ScrapeError:
            await self._end("unavailable", items_total=items.total)
            raise
        await self._end(reading.outcome, items_total=items.total, posts_found=reading.posts_found)
        return reading

    async def _start(self, order: ActorRunRequest) -> ActorRun:
        self._begun_at_s = time.monotonic()
        self._unanswered = order.actor
        try:
            run = await self._runs.start(order, mark=self._mark)
        except ScrapeError as trouble:
            if trouble.was_sent:
                self._uncertain.add(order.actor)
            else:
                self._unanswered = None
            raise
        self._unanswered = None
        self._known.add(run.id)
        self._run = run
        return run

    async def _lost(self) -> ActorRun | None:
        """The run whose start had no response, if it exists. Checked before another start."""
        if self._unanswered is None:
            return None
        await self._find_strays(self._unanswered)
        self._unanswered = None
        self._run = self._strays.pop() if self._strays else None
        return self._run

    async def _find_strays(self, actor: str) -> None:
        found = await self._runs.marked(actor, mark=self._mark, since=self._since)
        strays = [run for run in found if run.id not in self._known]
        self._known.update(run.id for run in strays)
        self._strays.extend(strays)

    async def _items(self, run: ActorRun, items_max: int) -> DatasetItems:
        items = await self._runs.items(run, items_max=items_max)
        if not items.found:
            await self._sleep(SECOND_READING_S)
            items = await self._runs.items(run, items_max=items_max)
        return items

    async def _end(self, outcome: str, *, items_total: int | None = None, posts_found: int = 0) -> None:
        run, self._run = self._run, None
        await run_uncancelled(self._write(outcome, run, items_total=items_total, posts_found=posts_found))

    async def _write(
        self, outcome: str, run: ActorRun | None, *, items_total: int | None = None, posts_found: int = 0
    ) -> None:
        self._has_written = True
        await self._receipts.write(
            outcome,
            begun_at_s=self._begun_at_s,
            cost=self._receipts.cost_of_run(run, items_total),
            posts_found=posts_found,
            run_id=run.id if run else None,
        )

    async def close(self, outcome: str) -> None:
        """``outcome`` is recorded for runs that have not finished."""
        is_certain = await self._is_every_start_accounted_for()
        left = [run for run in (self._run, *self._strays) if run is not None]
        self._run, self._strays = None, []
        for run in left:
            await self._write(outcome, await self._stopped(run))
        if not is_certain:
            log.error("run_may_be_left_running", actor=self._unanswered, mark=self._mark)
            await self._write(outcome, None)
        elif not self._has_written and outcome != "cancelled":
            # No run was started; the failure is recorded at no cost.
            await self._receipts.write(outcome, begun_at_s=self._begun_at_s, cost=(0, False))

    async def _is_every_start_accounted_for(self) -> bool:
        try:
            async with asyncio.timeout(CLEAR_UP_S):
                for actor in self._uncertain:
                    await self._find_strays(actor)
                if self._unanswered is not None and not self._strays:
                    await self._sleep(LATECOMERS_S)
                    await self._find_strays(self._unanswered)
        except (ScrapeError, TimeoutError):
            return self._unanswered is None or bool(self._strays)
        return True

    async def _stopped(self, run: ActorRun) -> ActorRun:
        """A finished run is returned unchanged. A run that cannot be aborted ends by its own timeout."""
        if run.is_over:
            return run
        for attempt in range(ATTEMPTS_TO_ABORT):
            try:
                async with asyncio.timeout(CLEAR_UP_S):
                    return await self._runs.abort(run.id)
            except (ScrapeError, TimeoutError) as error:
                log.warning("run_not_stopped", run_id=run.id, attempt=attempt, trouble=repr(error))
        log.error("run_left_running", run_id=run.id)
        return run
