"""Response schemas of the operators' reports, in dollars and percentages, with examples."""

from datetime import date, datetime
from uuid import UUID

import msgspec

from features.costs.application.reports import AccountSpendingReport
from features.costs.controllers.money import dollars
from features.costs.domain.reports import (
    AccountSpending,
    Cache,
    CacheRate,
    CostLine,
    Latency,
    Refusal,
    SuccessRate,
)


class ReportResponse(msgspec.Struct, frozen=True, kw_only=True):
    since: datetime
    until: datetime
    is_complete: bool


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


class SpendersResponse(ReportResponse, frozen=True, kw_only=True):
    cost_dollars: float
    items: list[SpenderResponse]


class LatencyResponse(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    route: str
    requests: int
    failures: int
    p50_ms: float | None
    p95_ms: float | None


class LatenciesResponse(ReportResponse, frozen=True, kw_only=True):
    items: list[LatencyResponse]


class RefusalsResponse(ReportResponse, frozen=True, kw_only=True):
    items: list[Refusal]


class CacheRateResponse(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    cache: Cache
    hits: int
    misses: int
    hit_percent: float


class CacheRatesResponse(ReportResponse, frozen=True, kw_only=True):
    items: list[CacheRateResponse]


class SuccessRateResponse(msgspec.Struct, frozen=True, kw_only=True):
    day: date
    analysis_type: str
    completed: int
    failed: int
    cancelled: int
    success_percent: float | None


class SuccessRatesResponse(ReportResponse, frozen=True, kw_only=True):
    items: list[SuccessRateResponse]


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


class CostLinesResponse(ReportResponse, frozen=True, kw_only=True):
    items: list[CostLineResponse]


WINDOW_EXAMPLE = {"since": "2026-10-17T00:00:00Z", "until": "2026-11-16T00:00:00Z", "is_complete": True}
SPENDER_EXAMPLE = {
    "account_id": "7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11",
    "calls": 412,
    "calls_unpriced": 0,
    "cost_dollars": 3.1,
    "share_percent": 62.0,
    "cumulative_percent": 62.0,
    "users": [{"user_id": "1c8a0b7e-93d4-4b57-8f0e-6a2d5c4b3e21", "cost_dollars": 3.1}],
}
LATENCY_EXAMPLE = {
    "method": "GET",
    "route": "/v1/credits/balance",
    "requests": 10412,
    "failures": 0,
    "p50_ms": 1.4,
    "p95_ms": 3.9,
}
REFUSAL_EXAMPLE = {
    "method": "GET",
    "route": "/v1/credits/balance",
    "status": 401,
    "code": "token_missing",
    "requests": 312,
    "requests_without_account": 312,
}
CACHE_EXAMPLE = {
    "at": "2026-11-15T00:00:00Z",
    "cache": "profiles",
    "hits": 30,
    "misses": 70,
    "hit_percent": 30.0,
}
SUCCESS_EXAMPLE = {
    "day": "2026-11-15",
    "analysis_type": "deep",
    "completed": 97,
    "failed": 3,
    "cancelled": 1,
    "success_percent": 97.0,
}
COST_EXAMPLE = {
    "day": "2026-11-15",
    "provider": "openai",
    "model": "gpt-5-mini",
    "task": "deep_core",
    "calls": 120,
    "calls_cached": 20,
    "calls_failed": 2,
    "calls_unpriced": 0,
    "tokens_in": 240000,
    "tokens_cached": 96000,
    "tokens_out": 90000,
    "cost_dollars": 0.2184,
    "is_simulated": False,
}


def spender_out(spender: AccountSpending, report: AccountSpendingReport) -> SpenderResponse:
    total = report.cost_nanodollars
    return SpenderResponse(
        account_id=spender.account_id,
        calls=spender.calls,
        calls_unpriced=spender.calls_unpriced,
        cost_dollars=dollars(spender.cost_nanodollars),
        share_percent=100 * spender.cost_nanodollars / total,
        cumulative_percent=100 * spender.cumulative_nanodollars / total,
        users=[
            UserSpendingResponse(user_id=user.user_id, cost_dollars=dollars(user.cost_nanodollars))
            for user in spender.users
        ],
    )


def latency_out(latency: Latency) -> LatencyResponse:
    return msgspec.convert(latency, LatencyResponse, from_attributes=True)


def cache_rate_out(rate: CacheRate) -> CacheRateResponse:
    return CacheRateResponse(
        at=rate.at,
        cache=rate.cache,
        hits=rate.hits,
        misses=rate.misses,
        hit_percent=100 * rate.hits / (rate.hits + rate.misses),
    )


def success_rate_out(rate: SuccessRate) -> SuccessRateResponse:
    ended = rate.completed + rate.failed
    return SuccessRateResponse(
        day=rate.day,
        analysis_type=rate.analysis_type,
        completed=rate.completed,
        failed=rate.failed,
        cancelled=rate.cancelled,
        success_percent=100 * rate.completed / ended if ended else None,
    )


def cost_line_out(line: CostLine) -> CostLineResponse:
    fields = msgspec.structs.asdict(line)
    return CostLineResponse(cost_dollars=dollars(fields.pop("cost_nanodollars")), **fields)
