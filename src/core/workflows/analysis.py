"""Workflow of one analysis: scrape the profile, run the prompts in parallel, score and save."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from core.engine.run_context import RunCancelled, RunContext, StepFailed
from core.engine.workflow import RunResult
from core.workflows.endings import SAVE, SCRAPE, cancelled, ended, refused
from core.workflows.records import RunMetrics
from features.analysis.application.assemble_result import (
    AnalysisInput,
    AnalysisRequest,
    CompletedPrompts,
    assemble,
)
from features.analysis.application.steps import AnalysisSteps, ScrapedProfile
from features.analysis.domain.analysis import Analysis
from features.analysis.domain.prompting.prompts import FORMS
from features.analysis.domain.requests import NewAnalysis
from features.runs.domain.run import Run
from shared.retry import RetryPolicy

# Provider clients retry internally, so the step must not.
ONCE = RetryPolicy(attempts_max=1)
SCRAPE_PERCENT, ASK_PERCENT, SAVE_PERCENT = 10, 40, 90


@dataclass(frozen=True, slots=True)
class AnalysisWorkflow:
    """``save`` joins the transaction that charges for the analysis."""

    steps: AnalysisSteps
    save: Callable[[Analysis], Awaitable[None]]
    records: RunMetrics

    async def carry_out(self, work: RunContext) -> RunResult:
        request = _request(work.run)
        finished, score = await self._carry_out(work, request)
        noting = partial(self.records.analysis_ended, request, score)
        return RunResult(finished.end, finished.deliver, noting)

    async def _carry_out(self, work: RunContext, request: AnalysisRequest) -> tuple[RunResult, int | None]:
        try:
            return await self._analyse(work, request)
        except RunCancelled as cancellation:
            return RunResult(cancelled(work.run, cancellation)), None
        except StepFailed as refusal:
            return RunResult(refused(work.run, refusal)), None

    async def _analyse(self, work: RunContext, request: AnalysisRequest) -> tuple[RunResult, int | None]:
        looked = await work.step(
            SCRAPE,
            partial(self.steps.look, request),
            returns=ScrapedProfile,
            percent=SCRAPE_PERCENT,
            retry=ONCE,
        )
        if looked.verdict.outcome != "ok":
            outcome = looked.verdict.outcome
            return RunResult(ended(work.run, "failed", outcome, outcome)), None
        subject = await self.steps.consider(request, looked)
        analysis = assemble(subject, await self._ask(work, subject))
        await work.report(SAVE, SAVE_PERCENT)
        work.check_cancelled(SAVE)
        ending = ended(work.run, "completed", "completed_from_cache" if analysis.is_cached else "completed")
        return RunResult(ending, partial(self.save, analysis)), analysis.score.total

    async def _ask(self, work: RunContext, subject: AnalysisInput) -> list[CompletedPrompts]:
        answered = await work.parallel(
            {name: partial(self.steps.ask, name, subject) for name in FORMS[subject.request.analysis_type]},
            returns=CompletedPrompts,
            percents=(ASK_PERCENT, SAVE_PERCENT),
            retry=ONCE,
        )
        return list(answered.values())


def _request(run: Run) -> AnalysisRequest:
    order = msgspec.convert(run.subject, NewAnalysis)
    return AnalysisRequest(
        run_id=run.id,
        account_id=run.account_id,
        user_id=run.user_id,
        username=order.username,
        analysis_type=order.analysis_type,
        business_profile_id=order.business_profile_id,
        is_fresh=order.is_fresh,
    )
