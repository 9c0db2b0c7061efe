from dataclasses import dataclass

from features.analysis.application.ports import AnalysisFilter, AnalysisStore
from features.analysis.domain.analysis import AnalysisEntry, StoredAnalysis
from features.analysis.domain.errors import AnalysisNotFound
from shared.caller import Caller
from shared.ids import RunId
from shared.pagination import Cursor, Page, decode_cursor, page_of


@dataclass(frozen=True, slots=True)
class Analyses:
    """Stored analyses of an account. Lists go back as far as the account's plan allows; an analysis is
    readable by its id at any age.
    """

    store: AnalysisStore

    async def page(
        self, caller: Caller, only: AnalysisFilter, *, cursor: str | None, limit: int
    ) -> Page[AnalysisEntry]:
        found = await self.store.list(caller, only, after=decode_cursor(cursor), analyses_max=limit + 1)
        return page_of(found, limit, lambda entry: Cursor(entry.created_at, entry.id))

    async def get(self, caller: Caller, analysis_id: RunId) -> StoredAnalysis:
        kept = await self.store.get(caller, analysis_id)
        if kept is None:
            raise AnalysisNotFound
        return kept
