"""Costs of provider calls: reports for operators, and the cost of a run."""

from datetime import timedelta

from core.wiring.slice import ApiParts, Resources, Slice
from features.costs.application.reports import CostReports
from features.costs.application.run_costs import RunCosts
from features.costs.controllers.reports import CostReportsController, RunCostsController
from features.operations.domain.retention import RetentionRule
from infrastructure.database.costs.reports import PostgresCostFigures
from shared.clock import utc_now

CENT_NANODOLLARS = 10_000_000


def _api(resources: Resources) -> ApiParts:
    price_nanodollars = resources.runtime.settings.credit_price_cents * CENT_NANODOLLARS
    return ApiParts(
        dependencies={
            "cost_reports": CostReports(PostgresCostFigures(resources.database), utc_now),
            "run_costs": RunCosts(resources.costs.costs, price_nanodollars),
        }
    )


COSTS = Slice(
    name="costs",
    controllers=(CostReportsController, RunCostsController),
    retention={
        "daily-cleanup": (
            RetentionRule("public.ai_usage_logs", timedelta(days=90)),
            RetentionRule("public.scrape_logs", timedelta(days=90)),
        ),
        "progress-expiry": (RetentionRule("traffic.data_points", timedelta(days=90)),),
    },
    api=_api,
)
