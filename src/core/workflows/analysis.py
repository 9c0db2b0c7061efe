"""Workflow of one analysis: scrape the profile, run the prompts in parallel, score and save."""

from dataclasses import dataclass
from functools import partial

import msgspec
import structlog

from core.engine.run_context import RunCancelled, RunContext, StepFailed
from core.engine.workflow import RunResult
from features.analysis.application.assemble_result import (
    AnalysisInput,
    AnalysisRequest,
    CompletedPrompt,
    assemble,
)
from features.analysis.application.run_metrics import RunMetrics
from features.analysis.application.save_result import SaveResult
from features.analysis.application.steps import AnalysisSteps, ScrapedProfile
from features.analysis.domain.alerts import Alert
from features.analysis.domain.outcomes import (
    SAVE,
    SCRAPE,
    cancellation_outcome,
    completion_outcome,
    failure_outcome,
)
from features.analysis.domain.prompting.prompts import FORMS
from features.analysis.domain.requests import NewAnalysis
from features.runs.domain.refunds import settled
from features.runs.domain.run import Run
from shared.ids import AnalysisType, RunId
from shared.retry import RetryPolicy

# Provider clients retry internally, so the step must not.
NO_RETRY = RetryPolicy(attempts_max=1)
SCRAPE_PERCENT, PROMPTS_PERCENT, SAVE_PERCENT = 10, 40, 90

log: structlog.stdlib.BoundLogger = structlog.get_logger("analysis")


@dataclass(frozen=True, slots=True)
class AnalysisWorkflow:
    steps: AnalysisSteps
    result: SaveResult
    metrics: RunMetrics

    async def run(self, context: RunContext) -> RunResult:
        request = _request(context.run)
        result, score = await self._result(context, request)
        return RunResult(result.end, result.deliver, partial(self.metrics.record_end, request, score))

    async def _result(self, context: RunContext, request: AnalysisRequest) -> tuple[RunResult, int | None]:
        run = context.run
        try:
            return await self._analyse(context, request)
        except RunCancelled as cancelled:
            return RunResult(settled(run, "cancelled", cancellation_outcome(cancelled.step))), None
        except StepFailed as failed:
            return RunResult(settled(run, "failed", failure_outcome(failed.code), failed.code)), None

    async def _analyse(self, context: RunContext, request: AnalysisRequest) -> tuple[RunResult, int | None]:
        scraped = await context.step(
            SCRAPE,
            partial(self.steps.fetch_profile, request),
            returns=ScrapedProfile,
            percent=SCRAPE_PERCENT,
            retry=NO_RETRY,
        )
        outcome = scraped.eligibility.outcome
        if outcome != "ok":
            return RunResult(settled(context.run, "failed", outcome, outcome)), None
        prepared = await self.steps.prepare(request, scraped)
        analysis = assemble(prepared, await self._complete(context, prepared))
        await context.report(SAVE, SAVE_PERCENT)
        context.check_cancelled(SAVE)
        end = settled(context.run, "completed", completion_outcome(is_cached=analysis.is_cached))
        return RunResult(end, partial(self.result.save, analysis)), analysis.score.total

    async def _complete(self, context: RunContext, prepared: AnalysisInput) -> list[CompletedPrompt]:
        completed = await context.parallel(
            {
                name: partial(self.steps.complete, name, prepared)
                for name in FORMS[prepared.request.analysis_type]
            },
            returns=CompletedPrompt,
            percents=(PROMPTS_PERCENT, SAVE_PERCENT),
            retry=NO_RETRY,
        )
        return list(completed.values())


def log_alert(run_id: RunId, analysis_type: AnalysisType, alert: Alert) -> None:
    log.warning(
        "analysis_limit_exceeded",
        run_id=str(run_id),
        analysis_type=analysis_type,
        alert=alert.kind,
        level=alert.level,
        value=alert.value,
        limit=alert.limit,
    )


def _request(run: Run) -> AnalysisRequest:
    requested = msgspec.convert(run.subject, NewAnalysis)
    return AnalysisRequest(
        run_id=run.id,
        account_id=run.account_id,
        user_id=run.user_id,
        username=requested.username,
        analysis_type=requested.analysis_type,
        business_profile_id=requested.business_profile_id,
        is_fresh=requested.is_fresh,
    )
