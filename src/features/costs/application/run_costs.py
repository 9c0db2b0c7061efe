from dataclasses import dataclass
from uuid import UUID

from features.costs.application.ports import RunBreakdowns
from features.costs.domain.breakdown import CostBreakdown
from features.costs.domain.errors import RunWithoutCosts


@dataclass(frozen=True, slots=True)
class RunCosts:
    tracker: RunBreakdowns
    credit_nanodollars: int

    async def breakdown(self, run_id: UUID) -> CostBreakdown:
        """Raises RunWithoutCosts."""
        found = await self.tracker.get_breakdown(run_id, credit_nanodollars=self.credit_nanodollars)
        if not found.total.calls:
            raise RunWithoutCosts(run_id=str(run_id))
        return found
