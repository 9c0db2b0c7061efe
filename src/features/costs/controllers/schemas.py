"""Response schemas of the cost reports, in dollars and percentages."""

from datetime import date, datetime
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from features.costs.application.reports import AccountSpendingReport, Report
from features.costs.domain.breakdown import CallCosts, CostBreakdown
from features.costs.domain.reports import AccountSpending, Cache, CacheRate, CostLine, SuccessRate
from shared.http.responses import struct_from

T = TypeVar("T")

DOLLAR_NANODOLLARS = 1_000_000_000


def dollars(nanodollars: int) -> float:
    """Exact to the billionth below one million dollars."""
    return nanodollars / DOLLAR_NANODOLLARS


class ReportResponse(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    since: datetime
    until: datetime
    is_complete: bool
    items: list[T]


class UserSpendingResponse(msgspec.Struct, frozen=True, kw_only=True):
    user_id: UUID | None
    cost_dollars: float


class SpenderResponse(msgspec.Struct, frozen=True, kw_only=True):
    account_id: UUID | None
    calls: int
    calls_unpriced: int
    cost_dollars: float
    share_percent: float
    cumulative_percent: float
    users: list[UserSpendingResponse]


class SpendersResponse(msgspec.Struct, frozen=True, kw_only=True):
    since: datetime
    until: datetime
    is_complete: bool
    cost_dollars: float
    items: list[SpenderResponse]


class CacheRateResponse(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    cache: Cache
    hits: int
    misses: int
    hit_percent: float


class SuccessRateResponse(msgspec.Struct, frozen=True, kw_only=True):
    day: date
    analysis_type: str
    completed: int
    failed: int
    cancelled: int
    success_percent: float | None


class CostLineResponse(msgspec.Struct, frozen=True, kw_only=True):
    day: date
    provider: str
    model: str
    task: str
    calls: int
    calls_cached: int
    calls_failed: int
    calls_unpriced: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    cost_dollars: float
    is_simulated: bool


class CallCostsResponse(msgspec.Struct, frozen=True, kw_only=True):
    calls: int
    calls_unpriced: int
    cost_dollars: float
    duration_ms: float


class MarginsResponse(msgspec.Struct, frozen=True, kw_only=True):
    revenue_dollars: float
    gross_dollars: float
    percent: float | None
    is_at_most: bool


class RunCostsResponse(msgspec.Struct, frozen=True, kw_only=True):
    run_id: UUID
    apify: CallCostsResponse
    ai: CallCostsResponse
    total: CallCostsResponse
    margins: MarginsResponse


def report_response(report: Report[T]) -> ReportResponse[T]:
    return ReportResponse(
        since=report.window.since,
        until=report.window.until,
        is_complete=report.is_complete,
        items=report.lines,
    )


def spenders_response(report: AccountSpendingReport) -> SpendersResponse:
    return SpendersResponse(
        since=report.window.since,
        until=report.window.until,
        is_complete=report.is_complete,
        cost_dollars=dollars(report.cost_nanodollars),
        items=[_spender_response(spender, report.cost_nanodollars) for spender in report.lines],
    )


def _spender_response(spender: AccountSpending, total_nanodollars: int) -> SpenderResponse:
    return struct_from(
        SpenderResponse,
        spender,
        cost_dollars=dollars(spender.cost_nanodollars),
        share_percent=100 * spender.cost_nanodollars / total_nanodollars,
        cumulative_percent=100 * spender.cumulative_nanodollars / total_nanodollars,
        users=[
            UserSpendingResponse(user_id=user.user_id, cost_dollars=dollars(user.cost_nanodollars))
            for user in spender.users
        ],
    )


def cache_rate_response(rate: CacheRate) -> CacheRateResponse:
    return struct_from(CacheRateResponse, rate, hit_percent=100 * rate.hits / (rate.hits + rate.misses))


def success_rate_response(rate: SuccessRate) -> SuccessRateResponse:
    ended = rate.completed + rate.failed
    return struct_from(
        SuccessRateResponse, rate, success_percent=100 * rate.completed / ended if ended else None
    )


def cost_line_response(line: CostLine) -> CostLineResponse:
    return struct_from(CostLineResponse, line, cost_dollars=dollars(line.cost_nanodollars))


def run_costs_response(run_id: UUID, costs: CostBreakdown) -> RunCostsResponse:
    margins = struct_from(
        MarginsResponse,
        costs.margins,
        revenue_dollars=dollars(costs.margins.revenue_nanodollars),
        gross_dollars=dollars(costs.margins.gross_nanodollars),
    )
    return RunCostsResponse(
        run_id=run_id,
        apify=_call_costs_response(costs.apify),
        ai=_call_costs_response(costs.ai),
        total=_call_costs_response(costs.total),
        margins=margins,
    )


def _call_costs_response(costs: CallCosts) -> CallCostsResponse:
    return struct_from(CallCostsResponse, costs, cost_dollars=dollars(costs.cost_nanodollars))
