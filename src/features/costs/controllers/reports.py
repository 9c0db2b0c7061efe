"""Operators' reports: spending, latency, refused requests, cache rates, success rates, costs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromQuery, QueryParameter

from features.costs.application.ports import Step
from features.costs.application.reports import CostReports
from features.costs.controllers.money import dollars
from features.costs.controllers.report_schemas import (
    CACHE_EXAMPLE,
    COST_EXAMPLE,
    LATENCY_EXAMPLE,
    REFUSAL_EXAMPLE,
    SPENDER_EXAMPLE,
    SUCCESS_EXAMPLE,
    WINDOW_EXAMPLE,
    CacheRatesResponse,
    CostLinesResponse,
    LatenciesResponse,
    RefusalsResponse,
    ReportResponse,
    SpendersResponse,
    SuccessRatesResponse,
    cache_rate_out,
    cost_line_out,
    latency_out,
    spender_out,
    success_rate_out,
)
from shared.http.route_policy import OPERATORS_ONLY
from shared.timestamps import as_utc

At = Annotated[
    datetime | None,
    QueryParameter(description="An instant with its offset, as 2026-11-01T00:00:00Z."),
]
Share = Annotated[int, QueryParameter(ge=1, le=100, description="Percent of the cost.")]


def _answer(
    kind: type[ReportResponse], line: Mapping[str, object], **more: object
) -> dict[int, ResponseSpec]:
    example = Example(value={**WINDOW_EXAMPLE, **more, "items": [line]})
    return {200: ResponseSpec(kind, description="The report", examples=[example])}


class CostReportsController(Controller):
    path = "/v1/admin/reports"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @get(
        "/spenders",
        operation_id="reportSpenders",
        summary="Who drives the cost",
        responses=_answer(SpendersResponse, SPENDER_EXAMPLE, cost_dollars=5.0),
    )
    async def spenders(
        self,
        cost_reports: NamedDependency[CostReports],
        since: At = None,
        until: At = None,
        share: Share = 80,
    ) -> SpendersResponse:
        """The accounts that together make up `share` percent of what models cost, the largest first.

        `since` is included, `until` is not; 30 days by default, 90 at the most. An account of null is the
        system itself, an anonymous visitor, or an account that is gone. 1,000 accounts at the most:
        `is_complete` says whether that was all.
        """
        report = await cost_reports.spenders(as_utc(since), as_utc(until), share_percent=share)
        return SpendersResponse(
            since=report.window.since,
            until=report.window.until,
            is_complete=report.is_complete,
            cost_dollars=dollars(report.cost_nanodollars),
            items=[spender_out(spender, report) for spender in report.lines],
        )

    @get(
        "/latency",
        operation_id="reportLatency",
        summary="What is slow",
        responses=_answer(LatenciesResponse, LATENCY_EXAMPLE),
    )
    async def latency(
        self, cost_reports: NamedDependency[CostReports], since: At = None, until: At = None
    ) -> LatenciesResponse:
        """How long requests took, by method and route: half of them at most `p50_ms`, 95 of 100 at most
        `p95_ms`. The slowest first.

        `since` is included, `until` is not; 30 days by default, 90 at the most. An empty route: there is
        none at the address that was asked for. 1,000 routes at the most. Refused requests without an account,
        and liveness checks, are counted in `requests` but not timed: a line of nothing else has null times.
        """
        report = await cost_reports.latencies(as_utc(since), as_utc(until))
        return LatenciesResponse(
            since=report.window.since,
            until=report.window.until,
            is_complete=report.is_complete,
            items=[latency_out(latency) for latency in report.lines],
        )

    @get(
        "/refusals",
        operation_id="reportRefusals",
        summary="What is refused",
        responses=_answer(RefusalsResponse, REFUSAL_EXAMPLE),
    )
    async def refusals(
        self, cost_reports: NamedDependency[CostReports], since: At = None, until: At = None
    ) -> RefusalsResponse:
        """Requests that got a status of 400 and above, by method, route, status and the `code` of the
        problem, the most frequent first. An empty route: there is none at the address of the request.

        `since` is included, `until` is not; 30 days by default, 90 at the most. Requests without an account
        are counted by the minute. 1,000 lines at the most.
        """
        report = await cost_reports.refusals(as_utc(since), as_utc(until))
        return RefusalsResponse(
            since=report.window.since,
            until=report.window.until,
            is_complete=report.is_complete,
            items=report.lines,
        )

    @get(
        "/cache",
        operation_id="reportCache",
        summary="What the caches save",
        responses=_answer(CacheRatesResponse, CACHE_EXAMPLE),
    )
    async def cache(
        self,
        cost_reports: NamedDependency[CostReports],
        since: At = None,
        until: At = None,
        by: FromQuery[Step] = "day",
    ) -> CacheRatesResponse:
        """How often what was asked for was known already, by the hour or the day (UTC), the newest first:
        `profiles` that were looked at before, `answers` of models that were given before.

        `since` is included, `until` is not; 30 days by default, 90 at the most, 31 by the hour. 1,000 lines
        at the most; hours and days in which nothing was asked have none.
        """
        report = await cost_reports.cache_rates(as_utc(since), as_utc(until), step=by)
        return CacheRatesResponse(
            since=report.window.since,
            until=report.window.until,
            is_complete=report.is_complete,
            items=[cache_rate_out(rate) for rate in report.lines],
        )

    @get(
        "/success",
        operation_id="reportSuccess",
        summary="What fails",
        responses=_answer(SuccessRatesResponse, SUCCESS_EXAMPLE),
    )
    async def success(
        self, cost_reports: NamedDependency[CostReports], since: At = None, until: At = None
    ) -> SuccessRatesResponse:
        """How many analyses were completed, by day (UTC) and type, the newest first. Those that were
        cancelled are no failures: `success_percent` is about the others.

        `since` is included, `until` is not; 30 days by default, 90 at the most. 1,000 lines at the most.
        """
        report = await cost_reports.success_rates(as_utc(since), as_utc(until))
        return SuccessRatesResponse(
            since=report.window.since,
            until=report.window.until,
            is_complete=report.is_complete,
            items=[success_rate_out(rate) for rate in report.lines],
        )

    @get(
        "/costs",
        operation_id="reportCosts",
        summary="What providers charge",
        responses=_answer(CostLinesResponse, COST_EXAMPLE),
    )
    async def costs(
        self, cost_reports: NamedDependency[CostReports], since: At = None, until: At = None
    ) -> CostLinesResponse:
        """Calls, tokens and costs by day (UTC), provider, model and task, the newest day first and within
        it the dearest. A scraper has no model; its task is `scrape`.

        `since` is included, `until` is not; 30 days by default, 90 at the most. Calls without a known price
        are counted, but not in the cost. 1,000 lines at the most.
        """
        report = await cost_reports.costs(as_utc(since), as_utc(until))
        return CostLinesResponse(
            since=report.window.since,
            until=report.window.until,
            is_complete=report.is_complete,
            items=[cost_line_out(line) for line in report.lines],
        )
