"""Costs of provider calls: reports for operators, and the cost of a run."""

from core.wiring.slice import ApiParts, Resources, Slice
from features.costs.application.reports import CostReports
from features.costs.application.run_costs import RunCosts
from features.costs.controllers.reports import CostReportsController
from features.costs.controllers.runs import RunCostsController
from infrastructure.database.costs.reports import PostgresCostFigures, PostgresRunLedger
from shared.clock import utc_now

CENT_NANODOLLARS = 10_000_000


def _api(resources: Resources) -> ApiParts:
    price_nanodollars = resources.runtime.settings.credit_price_cents * CENT_NANODOLLARS
    return ApiParts(
        dependencies={
            "cost_reports": CostReports(PostgresCostFigures(resources.database), utc_now),
            "run_costs": RunCosts(PostgresRunLedger(resources.database), price_nanodollars),
        }
    )


COSTS = Slice(
    name="costs",
    controllers=(CostReportsController, RunCostsController),
    purged_tables={
        "daily-cleanup": ("public.ai_usage_logs", "public.scrape_logs"),
        "progress-expiry": ("traffic.data_points",),
    },
    api=_api,
)
