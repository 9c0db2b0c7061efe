"""Costs of one run, for operators."""

from uuid import UUID

import msgspec
from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath

from features.costs.application.run_costs import RunCosts
from features.costs.controllers.money import dollars
from features.costs.domain.breakdown import CallCosts
from shared.http.route_policy import OPERATORS_ONLY


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


RUN_EXAMPLE = {
    "run_id": "0f8d4c52-7a0e-4a1c-9d2b-5f6d0e3c1b7a",
    "apify": {"calls": 1, "calls_unpriced": 0, "cost_dollars": 0.003, "duration_ms": 8100.0},
    "ai": {"calls": 2, "calls_unpriced": 0, "cost_dollars": 0.0121, "duration_ms": 9400.0},
    "total": {"calls": 3, "calls_unpriced": 0, "cost_dollars": 0.0151, "duration_ms": 17500.0},
    "margins": {"revenue_dollars": 4.85, "gross_dollars": 4.8349, "percent": 99.69, "is_at_most": False},
}


class RunCostsController(Controller):
    path = "/v1/admin/runs/{run_id:uuid}/costs"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @get(
        "/",
        operation_id="getRunCosts",
        summary="Costs of a run",
        responses={
            200: ResponseSpec(
                RunCostsResponse, description="The costs", examples=[Example(value=RUN_EXAMPLE)]
            )
        },
    )
    async def costs(self, run_id: FromPath[UUID], run_costs: NamedDependency[RunCosts]) -> RunCostsResponse:
        """What scrapers (`apify`) and models (`ai`) have charged for a run, and what is left of its revenue.

        Calls without a known price are counted, but not in the cost: the margin is then at most what it
        says. `percent` is null when nothing was charged.
        """
        found = await run_costs.breakdown(run_id)
        margins = found.margins
        return RunCostsResponse(
            run_id=run_id,
            apify=_out(found.apify),
            ai=_out(found.ai),
            total=_out(found.total),
            margins=MarginsResponse(
                revenue_dollars=dollars(margins.revenue_nanodollars),
                gross_dollars=dollars(margins.gross_nanodollars),
                percent=margins.percent,
                is_at_most=margins.is_at_most,
            ),
        )


def _out(costs: CallCosts) -> CallCostsResponse:
    return CallCostsResponse(
        calls=costs.calls,
        calls_unpriced=costs.calls_unpriced,
        cost_dollars=dollars(costs.cost_nanodollars),
        duration_ms=costs.duration_ms,
    )
