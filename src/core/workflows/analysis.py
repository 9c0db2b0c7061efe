"""One profile analysed: looked at, judged by models side by side, scored and saved."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from core.engine.execution import Finished
from core.engine.patience import Patience
from core.engine.work import RunCancelled, StepRefused, Work
from core.workflows.endings import SAVE, SCRAPE, cancelled, ended, refused
from core.workflows.records import RunRecords
from features.analysis.application.conclusions import AnalysisRequest, Answered, Considered, conclude
from features.analysis.application.steps import AnalysisSteps, Looked
from features.analysis.domain.analysis import Analysis
from features.analysis.domain.orders import AnalysisOrder
from features.analysis.domain.prompts import FORMS
from features.runs.domain.run import Run

# Whoever is asked has tried again already, as long as it made sense.
ONCE = Patience(attempts_max=1)
SCRAPE_PERCENT, ASK_PERCENT, SAVE_PERCENT = 10, 40, 90


@dataclass(frozen=True, slots=True)
class AnalysisWorkflow:
    """``save`` joins the transaction that charges for the analysis."""

    steps: AnalysisSteps
    save: Callable[[Analysis], Awaitable[None]]
    records: RunRecords

    async def carry_out(self, work: Work) -> Finished:
        request = _request(work.run)
        finished, score = await self._carry_out(work, request)
        noting = partial(self.records.analysis_ended, request, score)
        return Finished(finished.ending, finished.deliver, noting)

    async def _carry_out(self, work: Work, request: AnalysisRequest) -> tuple[Finished, int | None]:
        try:
            return await self._analyse(work, request)
        except RunCancelled as cancellation:
            return Finished(cancelled(work.run, cancellation)), None
        except StepRefused as refusal:
            return Finished(refused(work.run, refusal)), None

    async def _analyse(self, work: Work, request: AnalysisRequest) -> tuple[Finished, int | None]:
        looked = await work.step(
            SCRAPE,
            partial(self.steps.look, request),
            returns=Looked,
            percent=SCRAPE_PERCENT,
            patience=ONCE,
        )
        if looked.verdict.outcome != "ok":
            outcome = looked.verdict.outcome
            return Finished(ended(work.run, "failed", outcome, outcome)), None
        subject = await self.steps.consider(request, looked)
        analysis = conclude(subject, await self._ask(work, subject))
        await work.report(SAVE, SAVE_PERCENT)
        work.heed(SAVE)
        ending = ended(work.run, "completed", "completed_from_cache" if analysis.is_cached else "completed")
        return Finished(ending, partial(self.save, analysis)), analysis.score.total

    async def _ask(self, work: Work, subject: Considered) -> list[Answered]:
        answered = await work.together(
            {name: partial(self.steps.ask, name, subject) for name in FORMS[subject.request.analysis_type]},
            returns=Answered,
            percents=(ASK_PERCENT, SAVE_PERCENT),
            patience=ONCE,
        )
        return list(answered.values())


def _request(run: Run) -> AnalysisRequest:
    order = msgspec.convert(run.subject, AnalysisOrder)
    return AnalysisRequest(
        run_id=run.id,
        account_id=run.account_id,
        user_id=run.user_id,
        username=order.username,
        analysis_type=order.analysis_type,
        business_profile_id=order.business_profile_id,
        is_fresh=order.is_fresh,
    )
