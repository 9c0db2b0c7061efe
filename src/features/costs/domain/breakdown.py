"""Costs and margins of a run."""

from collections.abc import Iterable

import msgspec

from features.costs.domain.prices import PriceBook
from features.costs.domain.provider_calls import ModelCall, ScrapeCall
from shared.clock import Clock
from shared.llm import Usage

APIFY = "apify"


class CallCosts(msgspec.Struct, frozen=True, kw_only=True):
    calls: int
    calls_unpriced: int  # calls without a known price, not included in the cost
    cost_nanodollars: int
    duration_ms: float


class Margins(msgspec.Struct, frozen=True, kw_only=True):
    revenue_nanodollars: int
    gross_nanodollars: int
    percent: float | None  # of the revenue; None without revenue
    is_at_most: bool  # upper bound, because calls without a price are missing from the cost


class CostBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    apify: CallCosts  # all scrapers
    ai: CallCosts
    total: CallCosts
    margins: Margins


class Sale(msgspec.Struct, frozen=True, kw_only=True):
    """Credits charged to the customer and our revenue per credit."""

    credits_charged: int
    credit_nanodollars: int

    @property
    def revenue_nanodollars(self) -> int:
        return self.credits_charged * self.credit_nanodollars


class Spent(msgspec.Struct, frozen=True):
    """Cost and duration of one call."""

    cost_nanodollars: int | None
    duration_ms: float


class CostTracker:
    """Accumulates the costs of one run."""

    def __init__(self, prices: PriceBook, now: Clock, sale: Sale) -> None:
        self._prices = prices
        self._now = now
        self._sale = sale
        self._scrapes: list[Spent] = []
        self._model_calls: list[Spent] = []

    def track_apify_call(self, posts_scraped: int, duration_ms: float) -> None:
        """Priced per scraper run, regardless of the number of posts."""
        assert posts_scraped >= 0
        self._scrapes.append(Spent(self._prices.of_units(APIFY, "run", 1, self._now()), duration_ms))

    def track_ai_call(
        self,
        model: str,
        tokens_in: int,
        tokens_out: int,
        duration_ms: float,
        *,
        tokens_cached: int = 0,
        tokens_cache_written: int = 0,
        provider: str | None = None,
    ) -> None:
        """Without ``provider``, the provider is derived from the model's name."""
        usage = Usage(
            tokens_in=tokens_in,
            tokens_cached=tokens_cached,
            tokens_cache_written=tokens_cache_written,
            tokens_out=tokens_out,
        )
        cost = self._prices.of_tokens(provider or _maker_of(model), model, usage, self._now())
        self._model_calls.append(Spent(cost, duration_ms))

    def add(self, call: ModelCall | ScrapeCall) -> None:
        """Adds a call whose cost was calculated when it was made."""
        if isinstance(call, ModelCall):
            self._model_calls.append(Spent(call.cost_nanodollars, call.latency_ms))
        else:
            self._scrapes.append(Spent(call.cost_nanodollars, call.duration_ms))

    def get_breakdown(self) -> CostBreakdown:
        return breakdown(summed(self._scrapes), summed(self._model_calls), self._sale)


def summed(calls: Iterable[Spent]) -> CallCosts:
    calls = list(calls)
    costs = [call.cost_nanodollars for call in calls if call.cost_nanodollars is not None]
    return CallCosts(
        calls=len(calls),
        calls_unpriced=len(calls) - len(costs),
        cost_nanodollars=sum(costs),
        duration_ms=sum(call.duration_ms for call in calls),
    )


def breakdown(apify: CallCosts, ai: CallCosts, sale: Sale) -> CostBreakdown:
    total = CallCosts(
        calls=apify.calls + ai.calls,
        calls_unpriced=apify.calls_unpriced + ai.calls_unpriced,
        cost_nanodollars=apify.cost_nanodollars + ai.cost_nanodollars,
        duration_ms=apify.duration_ms + ai.duration_ms,
    )
    return CostBreakdown(apify=apify, ai=ai, total=total, margins=_margins(total, sale))


def _margins(total: CallCosts, sale: Sale) -> Margins:
    revenue = sale.revenue_nanodollars
    gross = revenue - total.cost_nanodollars
    return Margins(
        revenue_nanodollars=revenue,
        gross_nanodollars=gross,
        percent=100 * gross / revenue if revenue else None,
        is_at_most=total.calls_unpriced > 0,
    )


def _maker_of(model: str) -> str:
    return "anthropic" if model.startswith("claude") else "openai"
