from dataclasses import dataclass

from features.analysis.application.assemble_result import AnalysisRequest
from features.analysis.application.ports import AlertLog, AnalysisRecord, EndedRuns
from features.analysis.domain.alerts import alerts


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """Metrics and alerts of ended analysis runs."""

    runs: EndedRuns
    record: AnalysisRecord
    alert: AlertLog

    async def record_end(self, request: AnalysisRequest, score: int | None) -> None:
        """Records a data point, and an alert when cost or duration exceeds its limit. Must be called after
        the end of the run, when its row contains the final cost.
        """
        run = await self.runs.find(request.account_id, request.run_id)
        if run is None or run.ended_at is None or run.started_at is None:
            return  # the account was deleted in the meantime
        duration_ms = (run.ended_at - run.started_at).total_seconds() * 1_000
        self.record(
            run_id=request.run_id,
            username=request.username,
            analysis_type=request.analysis_type,
            outcome=run.status,
            cost_nanodollars=run.cost_nanodollars,
            duration_ms=duration_ms,
            score=score,
            cost_owner=request.cost_owner,
        )
        for alert in alerts(
            request.analysis_type,
            cost_nanodollars=run.cost_nanodollars or 0,
            calls_unpriced=int(run.cost_nanodollars is None),
            duration_ms=duration_ms,
        ):
            self.alert(request.run_id, request.analysis_type, alert)
