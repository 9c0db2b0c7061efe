from dataclasses import dataclass

from features.analysis.application.ports import AnalysisResults, AnonymousResults
from features.analysis.domain.analysis import Analysis
from features.analysis.domain.anonymous import anonymous_result


@dataclass(frozen=True, slots=True)
class SaveResult:
    """Saves an analysis with its lead, or the part of it that is shown without an account. Idempotent. Each
    write joins the transaction that charges for the run.
    """

    results: AnalysisResults
    anonymous_results: AnonymousResults

    async def save(self, analysis: Analysis) -> None:
        if analysis.is_anonymous:
            await self.anonymous_results.save(analysis.id, anonymous_result(analysis))
        else:
            await self.results.save(analysis)
