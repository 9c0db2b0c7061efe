from typing import LiteralString

import msgspec

from features.analysis.application.ports import AnalysisFilter, AnalysisStore
from features.analysis.domain.analysis import Analysis, AnalysisEntry, StoredAnalysis
from infrastructure.database.clients import Database
from shared.caller import Caller
from shared.ids import RunId
from shared.pagination import LATEST, Cursor

# Within the history of the account's plan; without the result, which is long.
LIST: LiteralString = """
select s.id, s.lead_id, s.business_profile_id, s.username, s.analysis_type, s.status, s.score, s.tier,
    s.niche_fit, s.engagement, s.confidence, s.niche, s.is_cached, s.is_simulated, s.user_id, s.scraped_at,
    s.created_at
from public.analyses as s
where s.account_id = $1 and s.deleted_at is null and (s.created_at, s.id) < ($2, $3)
    and s.created_at > (
        select coalesce(clock_timestamp() - make_interval(days => p.history_days), '-infinity')
        from public.accounts as a join public.plans as p on p.name = a.plan
        where a.id = $1
    )
    and ($4::uuid is null or s.lead_id = $4)
    and ($5::uuid is null or s.business_profile_id = $5)
    and ($6::text is null or s.analysis_type = $6)
order by s.created_at desc, s.id desc
limit $7
"""
GET: LiteralString = """
select lead_id, created_at, result from public.analyses
where account_id = $1 and id = $2 and deleted_at is null
"""


class PostgresAnalyses(AnalysisStore):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self, caller: Caller, only: AnalysisFilter, *, after: Cursor | None, analyses_max: int
    ) -> list[AnalysisEntry]:
        after = after or LATEST
        filters = (only.lead_id, only.business_profile_id, only.analysis_type)
        rows = await self._database.fetch_for(caller, LIST, after.at, after.id, *filters, analyses_max)
        return [AnalysisEntry(**row) for row in rows]

    async def get(self, caller: Caller, analysis_id: RunId) -> StoredAnalysis | None:
        rows = await self._database.fetch_for(caller, GET, analysis_id)
        if not rows:
            return None
        (row,) = rows
        return StoredAnalysis(
            analysis=msgspec.json.decode(row["result"], type=Analysis),
            lead_id=row["lead_id"],
            created_at=row["created_at"],
        )
