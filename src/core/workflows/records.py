"""Metrics and alerts of ended analysis runs."""

from dataclasses import dataclass

import structlog

from features.analysis.application.assemble_result import AnalysisRequest
from features.analysis.application.ports import AnalysisRecord
from features.costs.domain.alerts import alerts
from features.runs.application.ports import RunStarts

log: structlog.stdlib.BoundLogger = structlog.get_logger("analysis")


@dataclass(frozen=True, slots=True)
class RunMetrics:
    runs: RunStarts
    record: AnalysisRecord

    async def analysis_ended(self, request: AnalysisRequest, score: int | None) -> None:
        """Record a data point, and log an alert when cost or duration exceeds its limit. The run's row
        contains the final cost by now.
        """
        run = await self.runs.find(request.account_id, request.run_id)
        if run is None or run.ended_at is None or run.started_at is None:
            return  # deleted with its account in the meantime
        duration_ms = (run.ended_at - run.started_at).total_seconds() * 1_000
        self.record(
            run_id=run.id,
            username=request.username,
            analysis_type=request.analysis_type,
            outcome=run.status,
            cost_nanodollars=run.cost_nanodollars,
            duration_ms=duration_ms,
            score=score,
            spender=request.spender,
        )
        for alert in alerts(
            request.analysis_type,
            cost_nanodollars=run.cost_nanodollars or 0,
            calls_unpriced=int(run.cost_nanodollars is None),
            duration_ms=duration_ms,
        ):
            log.warning(
                "analysis_alert",
                run_id=str(run.id),
                analysis_type=request.analysis_type,
                alert=alert.kind,
                level=alert.level,
                value=alert.value,
                limit=alert.limit,
            )
