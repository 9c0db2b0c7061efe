"""Costs and margins of a run."""

import msgspec


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
