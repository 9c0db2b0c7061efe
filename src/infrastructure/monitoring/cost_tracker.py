"""Cost tracker: prices and records every paid provider call, and reads the costs of a run."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, Protocol
from uuid import UUID, uuid4

import structlog

from features.costs.application.ports import CallLog, RunBreakdowns, RunLedger
from features.costs.domain.breakdown import CostBreakdown, Sale, breakdown
from features.costs.domain.provider_calls import CallOutcome, ModelCall, ScrapeCall
from shared.cancellation import run_uncancelled
from shared.clock import Clock
from shared.llm import Cache, CostOwner, Usage

ERROR_LENGTH_MAX = 200

log: structlog.stdlib.BoundLogger = structlog.get_logger("costs")


class Prices(Protocol):
    """Implemented by PriceBook."""

    def of_tokens(self, provider: str, model: str, usage: Usage, at: datetime) -> int | None: ...

    def of_units(self, provider: str, unit: str, count: float, at: datetime) -> int | None: ...


@dataclass(slots=True)
class RequestUsage:
    """Usage rows of one request to the models, and their total cost."""

    owner: CostOwner
    task: str
    call_id: UUID = field(default_factory=uuid4)
    attempts: int = 0
    rows: int = 0
    cost_nanodollars: int | None = 0  # None when a price is unknown


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A row that is written when the outcome of the call is known."""

    request: RequestUsage
    provider: str
    model: str
    attempt: int  # 0: no call was made
    began_s: float


class ScrapeRequest(NamedTuple):
    """The scrape to which a scraper's calls belong."""

    provider: str
    username: str
    posts_asked: int
    owner: CostOwner
    is_simulated: bool


class ScrapeCost(NamedTuple):
    nanodollars: int | None  # None when the price is unknown
    is_estimated: bool = False


class CostTracker(RunBreakdowns):
    """All methods complete even if the caller is cancelled, because the money is already spent."""

    def __init__(
        self,
        calls: CallLog,
        prices: Prices,
        ledger: RunLedger | None = None,
        *,
        now: Clock = lambda: datetime.now(UTC),
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls = calls
        self._prices = prices
        self._ledger = ledger
        self._now = now
        self._monotonic_s = monotonic_s
        self._unpriced: set[tuple[str, str]] = set()  # bounded by the number of models

    def start_ai_call(
        self, request: RequestUsage, provider: str, model: str, *, is_attempt: bool = True
    ) -> UsageRow:
        request.attempts += is_attempt
        attempt = request.attempts if is_attempt else 0
        return UsageRow(request, provider, model, attempt, self._monotonic_s())

    async def track_ai_call(
        self,
        row: UsageRow,
        outcome: CallOutcome,
        *,
        is_simulated: bool,
        usage: Usage | None = None,  # None: nothing is charged
        is_estimated: bool = False,
        cache: Cache = "none",
        error: str | None = None,
        gateway_log_id: str | None = None,
    ) -> None:
        request, at = row.request, self._now()
        cost = 0 if usage is None else self._price(row, usage, at)
        request.rows += 1
        if cost is None or request.cost_nanodollars is None:
            request.cost_nanodollars = None
        else:
            request.cost_nanodollars += cost
        call = ModelCall(
            at=at,
            call_id=request.call_id,
            attempt=row.attempt,
            cost_owner=request.owner,
            provider=row.provider,
            model=row.model,
            task=request.task,
            outcome=outcome,
            usage=usage or Usage(),
            is_estimated=is_estimated,
            cost_nanodollars=cost,
            latency_ms=(self._monotonic_s() - row.began_s) * 1_000,
            cache=cache,
            is_simulated=is_simulated,
            error=None if error is None else error[:ERROR_LENGTH_MAX],
            gateway_log_id=gateway_log_id,
        )
        await run_uncancelled(self._calls.record_model_call(call))

    async def track_apify_call(
        self,
        request: ScrapeRequest,
        outcome: str,
        *,
        began_s: float,
        cost: ScrapeCost,
        posts_scraped: int = 0,
        run_id: str | None = None,
    ) -> None:
        """Also records ScraperAPI's calls. ``began_s`` is by the monotonic clock."""
        call = ScrapeCall(
            at=self._now(),
            cost_owner=request.owner,
            provider=request.provider,
            username=request.username,
            outcome=outcome,
            posts_asked=request.posts_asked,
            posts_found=posts_scraped,
            cost_nanodollars=cost.nanodollars,
            is_estimated=cost.is_estimated,
            duration_ms=(self._monotonic_s() - began_s) * 1_000,
            is_simulated=request.is_simulated,
            provider_run_id=run_id,
        )
        await run_uncancelled(self._calls.record_scrape(call))

    async def get_breakdown(self, run_id: UUID, *, credit_nanodollars: int) -> CostBreakdown:
        """Costs of the run's recorded calls, also when another process made them."""
        assert self._ledger is not None
        spending = await self._ledger.spending(run_id)
        sale = Sale(credits_charged=spending.credits_charged, credit_nanodollars=credit_nanodollars)
        return breakdown(spending.scrapes, spending.model_calls, sale)

    def price_of(self, provider: str, unit: str, count: float) -> int | None:
        return self._prices.of_units(provider, unit, count, self._now())

    def _price(self, row: UsageRow, usage: Usage, at: datetime) -> int | None:
        price = self._prices.of_tokens(row.provider, row.model, usage, at)
        if price is None and (row.provider, row.model) not in self._unpriced:
            self._unpriced.add((row.provider, row.model))
            log.warning("price_missing", provider=row.provider, model=row.model)
        return price
