from dataclasses import dataclass

from features.analysis.application.ports import AnalysisResults, AnonymousResults
from features.analysis.domain.analysis import Analysis
from features.analysis.domain.anonymous import visitor_result


@dataclass(frozen=True, slots=True)
class SaveAnalysis:
    """Stores the result. Each write joins the transaction that charges for the run."""

    results: AnalysisResults
    anonymous: AnonymousResults

    async def for_account(self, analysis: Analysis) -> None:
        await self.results.save(analysis)

    async def for_visitor(self, analysis: Analysis) -> None:
        assert analysis.answers.light is not None, "an anonymous analysis is light"
        result = visitor_result(
            analysis.profile,
            analysis.facts,
            analysis.score,
            analysis.answers.light,
            is_simulated=analysis.is_simulated,
        )
        await self.anonymous.save(analysis.id, result)
