from dataclasses import dataclass

from features.analysis.application.ports import AnalysisRuns, Prices, RunPayer, StartedRun
from features.analysis.domain.errors import KeyCannotSpend
from features.analysis.domain.requests import NewAnalysis
from shared.caller import Caller
from shared.ids import RunId


@dataclass(frozen=True, slots=True)
class StartAnalysis:
    runs: AnalysisRuns
    prices: Prices

    async def start(self, caller: Caller, run_id: RunId, order: NewAnalysis) -> StartedRun:
        """Idempotent by ``run_id``. An equal analysis in progress is returned, not started again."""
        payer = payer_of(caller)
        credits_held = await self.prices.credits(order.analysis_type)
        return await self.runs.start(run_id, payer, order, credits_held=credits_held)


def payer_of(caller: Caller) -> RunPayer:
    """Raises KeyCannotSpend."""
    if caller.is_test:
        raise KeyCannotSpend
    assert caller.chosen_account is not None, "a caller with write permission has one account"
    if caller.kind == "api_key":
        return RunPayer(account_id=caller.chosen_account, api_key_id=caller.id)
    return RunPayer(account_id=caller.chosen_account, user_id=caller.user_id)
