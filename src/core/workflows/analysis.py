"""One profile analysed: looked at, judged by models side by side, scored and saved."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from core.engine.execution import Finished
from core.engine.patience import Patience
from core.engine.work import RunCancelled, StepRefused, Work
from core.workflows.endings import SAVE, SCRAPE, cancelled, ended, refused
from core.workflows.records import RunRecords
from core.workflows.subjects import request_of
from features.analysis.application.conclusions import Answered, Considered, conclude
from features.analysis.application.steps import AnalysisSteps, Looked
from features.analysis.domain.analysis import Analysis
from features.analysis.domain.prompts import FORMS

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
        finished, score = await self._carry_out(work)
        request = request_of(work.run)
        return Finished(
            finished.ending, finished.deliver, partial(self.records.analysis_ended, request, score)
        )

    async def _carry_out(self, work: Work) -> tuple[Finished, int | None]:
        try:
            return await self._analyse(work)
        except RunCancelled as cancellation:
            return Finished(cancelled(work.run, cancellation)), None
        except StepRefused as refusal:
            return Finished(refused(work.run, refusal)), None

    async def _analyse(self, work: Work) -> tuple[Finished, int | None]:
        request = request_of(work.run)
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
