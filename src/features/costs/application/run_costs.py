from dataclasses import dataclass
from uuid import UUID

from features.costs.application.ports import RunLedger
from features.costs.domain.breakdown import CostBreakdown, Sale, breakdown
from features.costs.domain.errors import RunWithoutCosts


@dataclass(frozen=True, slots=True)
class RunCosts:
    """Calculates a run's costs from its recorded calls. The result equals that of the run's CostTracker, also
    when the process that held the tracker has ended.
    """

    ledger: RunLedger
    credit_nanodollars: int

    async def breakdown(self, run_id: UUID) -> CostBreakdown:
        """Raises RunWithoutCosts."""
        spending = await self.ledger.spending(run_id)
        if not spending.scrapes.calls + spending.model_calls.calls:
            raise RunWithoutCosts(run_id=str(run_id))
        sale = Sale(credits_charged=spending.credits_charged, credit_nanodollars=self.credit_nanodollars)
        return breakdown(spending.scrapes, spending.model_calls, sale)
