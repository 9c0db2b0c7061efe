from typing import LiteralString

import msgspec

from features.analysis.application.ports import AnalysisFilter, AnalysisStore
from features.analysis.domain.analysis import Analysis, AnalysisEntry, StoredAnalysis
from infrastructure.database.clients import Database
from shared.caller import Caller, no_account
from shared.ids import RunId
from shared.pagination import Cursor

LIST: LiteralString = "select * from caller.analyses($1, $2, $3, $4, $5, $6, $7, $8)"
GET: LiteralString = "select * from caller.analysis($1, $2, $3)"


class PostgresAnalyses(AnalysisStore):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self, caller: Caller, only: AnalysisFilter, *, after: Cursor | None, analyses_max: int
    ) -> list[AnalysisEntry]:
        rows = await self._database.user(caller.claims).call(
            LIST,
            caller.chosen_account,
            only.lead_id,
            only.business_profile_id,
            only.analysis_type,
            after and after.at,
            after and after.id,
            analyses_max,
        )
        if not rows:
            raise no_account(caller)
        return [AnalysisEntry(**row["entry"]) for row in rows if row["entry"] is not None]

    async def get(self, caller: Caller, analysis_id: RunId) -> StoredAnalysis | None:
        rows = await self._database.user(caller.claims).call(GET, caller.chosen_account, analysis_id)
        if not rows:
            raise no_account(caller)
        (row,) = rows
        if row["id"] is None:
            return None
        return StoredAnalysis(
            analysis=msgspec.json.decode(row["result"], type=Analysis),
            lead_id=row["lead_id"],
            created_at=row["created_at"],
        )
