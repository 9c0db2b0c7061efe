"""Operators' reports: spending, latency, rejected requests, cache rates, success rates, costs."""

from typing import Annotated
from uuid import UUID

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, QueryParameter

from features.costs.application.ports import Step
from features.costs.application.reports import CostReports
from features.costs.application.run_costs import RunCosts
from features.costs.controllers.schemas import (
    CacheRateResponse,
    CostLineResponse,
    ReportResponse,
    RunCostsResponse,
    SpendersResponse,
    SuccessRateResponse,
    cache_rate_response,
    cost_line_response,
    report_response,
    run_costs_response,
    spenders_response,
    success_rate_response,
)
from features.costs.domain.reports import Latency, Refusal
from shared.http.parameters import Time
from shared.http.route_policy import OPERATORS_ONLY
from shared.timestamps import as_utc

Share = Annotated[int, QueryParameter(ge=1, le=100, description="Percent of the cost.")]


class CostReportsController(Controller):
    path = "/v1/admin/reports"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @get("/spenders")
    async def report_spenders(
        self,
        cost_reports: NamedDependency[CostReports],
        since: Time = None,
        until: Time = None,
        share: Share = 80,
    ) -> SpendersResponse:
        """Report the accounts that cause `share` percent of the model costs, largest first.

        `since` is included, `until` is excluded; 30 days by default, at most 90. An account of null means
        the system itself, an anonymous user or a deleted account. `is_complete` is false if there are more
        than 1,000 accounts.
        """
        report = await cost_reports.spenders(as_utc(since), as_utc(until), share_percent=share)
        return spenders_response(report)

    @get("/latency")
    async def report_latency(
        self, cost_reports: NamedDependency[CostReports], since: Time = None, until: Time = None
    ) -> ReportResponse[Latency]:
        """Report the latency of requests by method and route, slowest first.

        `p50_ms` is the median, `p95_ms` the 95th percentile. `since` is included, `until` is excluded; 30
        days by default, at most 90. An empty route means a URL without a route. At most 1,000 routes.
        Rejected requests without an account, and liveness checks, are counted in `requests` but not timed: a
        line with no other requests has null times.
        """
        return report_response(await cost_reports.latencies(as_utc(since), as_utc(until)))

    @get("/refusals")
    async def report_refusals(
        self, cost_reports: NamedDependency[CostReports], since: Time = None, until: Time = None
    ) -> ReportResponse[Refusal]:
        """Report requests with status 400 and above, most frequent first.

        They are grouped by method, route, status and problem `code`. An empty route means a URL without a
        route. `since` is included, `until` is excluded; 30 days by default, at most 90. Requests without an
        account are counted per minute. At most 1,000 lines.
        """
        return report_response(await cost_reports.refusals(as_utc(since), as_utc(until)))

    @get("/cache")
    async def report_cache(
        self,
        cost_reports: NamedDependency[CostReports],
        since: Time = None,
        until: Time = None,
        by: FromQuery[Step] = "day",
    ) -> ReportResponse[CacheRateResponse]:
        """Report the hit rates of the caches by hour or day (UTC), newest first.

        `profiles` is the cache of scraped profiles, `answers` the cache of model completions. `since` is
        included, `until` is excluded; 30 days by default, at most 90, or 31 by the hour. At most 1,000
        lines; hours and days without lookups have none.
        """
        report = await cost_reports.cache_rates(as_utc(since), as_utc(until), step=by)
        return report_response(report.map(cache_rate_response))

    @get("/success")
    async def report_success(
        self, cost_reports: NamedDependency[CostReports], since: Time = None, until: Time = None
    ) -> ReportResponse[SuccessRateResponse]:
        """Report the success rates of analyses by day (UTC) and type, newest first.

        `success_percent` does not include cancelled analyses. `since` is included, `until` is excluded; 30
        days by default, at most 90. At most 1,000 lines.
        """
        report = await cost_reports.success_rates(as_utc(since), as_utc(until))
        return report_response(report.map(success_rate_response))

    @get("/costs")
    async def report_costs(
        self, cost_reports: NamedDependency[CostReports], since: Time = None, until: Time = None
    ) -> ReportResponse[CostLineResponse]:
        """Report calls, tokens and costs by day (UTC), provider, model and task.

        The newest day is first, and within a day the highest cost. A scraper has no model; its task is
        `scrape`. `since` is included, `until` is excluded; 30 days by default, at most 90. Calls without a
        known price are counted, but not included in the cost. At most 1,000 lines.
        """
        report = await cost_reports.costs(as_utc(since), as_utc(until))
        return report_response(report.map(cost_line_response))


class RunCostsController(Controller):
    path = "/v1/admin/runs/{run_id:uuid}/costs"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @get("/")
    async def get_run_costs(
        self, run_id: FromPath[UUID], run_costs: NamedDependency[RunCosts]
    ) -> RunCostsResponse:
        """Get the costs of a run and its margin.

        `apify` is the cost of scraping, `ai` the cost of models. Calls without a known price are counted,
        but not included in the cost; the real margin is then lower. `percent` is null when nothing was
        charged.
        """
        return run_costs_response(run_id, await run_costs.breakdown(run_id))
