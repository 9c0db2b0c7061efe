"""One scrape of a profile via Apify, with cleanup of every run that it started."""

import asyncio
import math
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import structlog

from infrastructure.monitoring.cost_tracker import CostTracker, ScrapeCost, ScrapeRequest
from infrastructure.scraping.errors import ScrapeError, ScrapeRetries, Sleep

T = TypeVar("T")

POLL_S = 20.0
ABORT_S = 12.0
ABORTS_MAX = 2
SECOND_READ_S = 2.0  # delay before an empty dataset is read again
NANODOLLARS = 10**9
OVER = frozenset({"SUCCEEDED", "FAILED", "TIMED-OUT", "ABORTED"})

log: structlog.stdlib.BoundLogger = structlog.get_logger("scraping")


class ActorRunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A run to start and the limit of its cost."""

    actor: str
    input: dict[str, Any]
    items_max: int  # charged items
    usd_max: Decimal
    timeout_s: float
    memory_mbytes: int | None = None  # None: the actor's default


class ActorRun(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    dataset_id: str
    status: str
    usd: float | None = None  # cost; not reported for every kind of actor
    item_usd: float | None = None  # price per item, for actors charged by result

    @property
    def is_over(self) -> bool:
        return self.status in OVER


class DatasetItems(msgspec.Struct, frozen=True):
    found: list[Any]
    total: int  # may exceed the number of items read


class ActorRuns(Protocol):
    """Runs of Apify's actors. Each call is one request, or one per page. Raises only ScrapeError."""

    async def start(self, request: ActorRunRequest) -> ActorRun: ...

    async def wait(self, run_id: str, *, wait_s: float) -> ActorRun:
        """Returns when the run has ended or after ``wait_s``."""
        ...

    async def items(self, run: ActorRun, *, items_max: int) -> DatasetItems: ...

    async def abort(self, run_id: str) -> ActorRun: ...

    async def close(self) -> None: ...


class ScrapeReading(msgspec.Struct, Generic[T], frozen=True):
    value: T
    outcome: str
    posts_found: int


class ApifyScrape:
    """Must be closed in every case: ``close`` stops the current run and records it."""

    def __init__(
        self,
        runs: ActorRuns,
        costs: CostTracker,
        request: ScrapeRequest,
        retries: ScrapeRetries,
        *,
        sleep: Sleep,
        poll_s: float = POLL_S,
    ) -> None:
        self._runs = runs
        self._costs = costs
        self._request = request
        self._retries = retries
        self._sleep = sleep
        self._poll_s = poll_s
        self._run: ActorRun | None = None
        self._began_s = time.monotonic()
        self._has_written = False

    async def run(
        self, request: ActorRunRequest, read: Callable[[list[Any]], ScrapeReading[T]], *, items_max: int
    ) -> ScrapeReading[T]:
        """Raises ScrapeError when no retry is left."""
        while True:
            try:
                return await self._attempt(request, read, items_max)
            except ScrapeError as error:
                await self._retries.wait_after(error)

    async def close(self, outcome: str) -> None:
        """``outcome`` is recorded for a run that has not finished."""
        run, self._run = self._run, None
        if run is not None:
            await self._write(outcome, await self._stop(run))
        elif not self._has_written and outcome != "cancelled":
            await self._costs.track_apify_call(
                self._request, outcome, began_s=self._began_s, cost=ScrapeCost(0)
            )

    async def _attempt(
        self, request: ActorRunRequest, read: Callable[[list[Any]], ScrapeReading[T]], items_max: int
    ) -> ScrapeReading[T]:
        """Resumes the previous attempt: a run in progress is not started again."""
        run = self._run or await self._start(request)
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

    async def _start(self, request: ActorRunRequest) -> ActorRun:
        """A start without a response may have started a run that ends by its own timeout. It is recorded with
        the estimated cost, because Apify has no idempotency keys.
        """
        self._began_s = time.monotonic()
        try:
            run = self._run = await self._runs.start(request)
        except ScrapeError as error:
            if error.was_sent:
                await self._end("timeout" if error.kind == "timeout" else "unavailable")
            raise
        except asyncio.CancelledError:
            await self._end("cancelled")
            raise
        return run

    async def _items(self, run: ActorRun, items_max: int) -> DatasetItems:
        items = await self._runs.items(run, items_max=items_max)
        if not items.found:
            await self._sleep(SECOND_READ_S)
            items = await self._runs.items(run, items_max=items_max)
        return items

    async def _end(self, outcome: str, *, items_total: int | None = None, posts_found: int = 0) -> None:
        run, self._run = self._run, None
        await self._write(outcome, run, items_total=items_total, posts_found=posts_found)

    async def _write(
        self, outcome: str, run: ActorRun | None, *, items_total: int | None = None, posts_found: int = 0
    ) -> None:
        self._has_written = True
        await self._costs.track_apify_call(
            self._request,
            outcome,
            began_s=self._began_s,
            cost=self._cost(run, items_total),
            posts_scraped=posts_found,
            run_id=run.id if run else None,
        )

    def _cost(self, run: ActorRun | None, items_total: int | None) -> ScrapeCost:
        """The cost reported by Apify, otherwise its price per item, otherwise our price per run."""
        if run is not None and run.usd is not None and math.isfinite(run.usd) and run.usd >= 0:
            return ScrapeCost(round(run.usd * NANODOLLARS), is_estimated=not run.is_over)
        if run is not None and run.item_usd is not None and items_total is not None:
            return ScrapeCost(round(run.item_usd * items_total * NANODOLLARS), is_estimated=True)
        return ScrapeCost(self._costs.price_of(self._request.provider, "run", 1), is_estimated=True)

    async def _stop(self, run: ActorRun) -> ActorRun:
        """A finished run is returned unchanged. A run that cannot be aborted ends by its own timeout."""
        if run.is_over:
            return run
        for attempt in range(ABORTS_MAX):
            try:
                async with asyncio.timeout(ABORT_S):
                    return await self._runs.abort(run.id)
            except (ScrapeError, TimeoutError) as error:
                log.warning("run_abort_failed", run_id=run.id, attempt=attempt, error=repr(error))
        log.error("run_left_running", run_id=run.id)
        return run
