from __future__ import annotations  # asyncpg's classes are generic in their stubs only

from typing import Any, LiteralString

import msgspec
from asyncpg import Record, UniqueViolationError

from features.analysis.application.ports import AnalysisResults
from features.analysis.domain.analysis import Analysis, SavedLead
from features.leads.application.ports import LeadFilter, LeadStore
from features.leads.domain.comparison import Snapshot, compare
from features.leads.domain.errors import LeadAlreadyExists
from features.leads.domain.leads import RESTORABLE_FOR, Lead, LeadAnalysis, LeadDetails, Sort, searchable
from infrastructure.database.analysis.analyses import LIST as LIST_ANALYSES
from infrastructure.database.clients import AdminClient, Database
from shared.caller import Caller
from shared.ids import LeadId
from shared.pagination import LATEST, Cursor, SortedCursor

SAVE: LiteralString = "select lead_id, is_new from leads.save($1, $2)"
# A parameter that is null sets no condition; $2 is the time within which the leads were deleted.
FILTER: LiteralString = """
select * from public.leads
where account_id = $1
    and case when $2::interval is null then deleted_at is null else deleted_at > clock_timestamp() - $2 end
    and ($3::uuid is null or business_profile_id = $3)
    and ($4::text[] is null or tier = any ($4))
    and ($5::integer is null or score >= $5)
    and ($6::integer is null or score <= $6)
    and ($7::text is null or niche_key = $7)
    and ($8::text is null or strpos(search_text, $8) > 0)
    and ($9::text is null or last_analysis_type = $9)
"""


def _sorted_by(column: LiteralString, column_type: LiteralString, direction: LiteralString) -> LiteralString:
    comparison = "<" if direction == "desc" else ">"
    return FILTER + (
        f"    and ($10::{column_type} is null or ({column}, id) {comparison} ($10, $11::uuid))\n"
        f"order by {column} {direction}, id {direction}\n"
        "limit $12"
    )


LISTS: dict[Sort, LiteralString] = {
    "-last_analysed_at": _sorted_by("last_analysed_at", "timestamptz", "desc"),
    "-score": _sorted_by("score", "bigint", "desc"),
    "score": _sorted_by("score", "bigint", "asc"),
    "username": _sorted_by("username", "text", "asc"),
    "-followers": _sorted_by("followers", "bigint", "desc"),
}
FIND: LiteralString = "select * from public.leads where account_id = $1 and id = $2 and deleted_at is null"
# The last analysis of a lead and the one before it, with the fields that are compared.
LAST_TWO: LiteralString = """
select l as lead, s.id, s.lead_id, s.business_profile_id, s.username, s.analysis_type, s.status, s.score,
    s.tier, s.niche_fit, s.engagement, s.confidence, s.niche, s.is_cached, s.is_simulated, s.user_id,
    s.scraped_at, s.created_at, jsonb_build_object(
        'analysis_type', s.analysis_type, 'analysed_at', s.scraped_at,
        'facts', s.result -> 'facts', 'score', s.result -> 'score') as snapshot
from public.leads as l
cross join lateral (
    select p.*, row_number() over (
        order by p.id = l.last_analysis_id desc, p.scraped_at desc, p.created_at desc, p.id
    ) as recency
    from public.analyses as p
    where p.account_id = l.account_id and p.lead_id = l.id
    order by recency
    limit 2
) as s
where l.account_id = $1 and l.id = $2 and l.deleted_at is null
order by s.recency
"""
DELETE: LiteralString = """
update public.leads
set deleted_at = statement_timestamp(), updated_at = statement_timestamp(), version = version + 1
where account_id = $1 and id = $2 and deleted_at is null
returning id
"""
# A separate statement, which sees analyses that were saved while the one above waited for the lead.
DELETE_ANALYSES: LiteralString = """
update public.analyses set deleted_at = statement_timestamp() where account_id = $1 and lead_id = $2
"""
RESTORABLE: LiteralString = """
select * from public.leads
where account_id = $1 and id = $2 and (deleted_at is null or deleted_at > clock_timestamp() - $3::interval)
for no key update
"""
RESTORE: LiteralString = """
update public.leads set deleted_at = null, updated_at = statement_timestamp(), version = version + 1
where account_id = $1 and id = $2
returning *
"""
RESTORE_ANALYSES: LiteralString = """
update public.analyses set deleted_at = null where account_id = $1 and lead_id = $2
"""


class PostgresAnalysisResults(AnalysisResults):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def save(self, analysis: Analysis) -> SavedLead:
        (row,) = await self._session.fetch(SAVE, _json(_lead_row(analysis)), _json(_analysis_row(analysis)))
        return SavedLead(lead_id=row["lead_id"], is_new=row["is_new"])


class PostgresLeads(LeadStore):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self, caller: Caller, filters: LeadFilter, *, sort: Sort, after: SortedCursor | None, leads_max: int
    ) -> list[Lead]:
        rows = await self._database.fetch_for(
            caller,
            LISTS[sort],
            RESTORABLE_FOR if filters.is_deleted else None,
            filters.business_profile_id,
            filters.tiers or None,
            filters.score_min,
            filters.score_max,
            filters.niche and searchable(filters.niche),
            filters.words and searchable(filters.words),
            filters.analysis_type,
            after and after.value,
            after and after.id,
            leads_max,
        )
        return [_lead(row) for row in rows]

    async def get(self, caller: Caller, lead_id: LeadId) -> LeadDetails | None:
        rows = await self._database.fetch_for(caller, LAST_TWO, lead_id)
        if not rows:
            return None
        snapshots = [msgspec.json.decode(row["snapshot"], type=Snapshot) for row in rows]
        return LeadDetails(
            **msgspec.structs.asdict(_lead(rows[0]["lead"])),
            latest_analysis=_analysis(rows[0]),
            comparison=compare(snapshots[1], snapshots[0]) if len(snapshots) > 1 else None,
        )

    async def delete(self, caller: Caller, lead_id: LeadId) -> bool:
        async with self._database.account(caller) as account:
            if not await account.fetch(DELETE, lead_id):
                return False
            await account.fetch(DELETE_ANALYSES, lead_id)
            return True

    async def restore(self, caller: Caller, lead_id: LeadId) -> Lead | None:
        async with self._database.account(caller) as account:
            rows = await account.fetch(RESTORABLE, lead_id, RESTORABLE_FOR)
            if rows and rows[0]["deleted_at"] is not None:
                try:
                    rows = await account.fetch(RESTORE, lead_id)
                except UniqueViolationError as error:
                    raise LeadAlreadyExists(username=rows[0]["username"]) from error
                await account.fetch(RESTORE_ANALYSES, lead_id)
            return _lead(rows[0]) if rows else None

    async def history(
        self, caller: Caller, lead_id: LeadId, *, after: Cursor | None, analyses_max: int
    ) -> list[LeadAnalysis] | None:
        after = after or LATEST
        async with self._database.account(caller) as account:
            if not await account.fetch(FIND, lead_id):
                return None
            rows = await account.fetch(LIST_ANALYSES, after.at, after.id, lead_id, None, None, analyses_max)
        return [_analysis(row) for row in rows]


def _lead(row: Record) -> Lead:
    names = (name for name in Lead.__struct_fields__ if name != "external_urls")
    return Lead(external_urls=tuple(row["external_urls"]), **{name: row[name] for name in names})


def _analysis(row: Record) -> LeadAnalysis:
    return LeadAnalysis(**{name: row[name] for name in LeadAnalysis.__struct_fields__})


def _json(row: dict[str, Any]) -> str:
    return msgspec.json.encode(row).decode()


def _lead_row(analysis: Analysis) -> dict[str, Any]:
    profile = analysis.profile
    return {
        **msgspec.structs.asdict(analysis.key),
        "full_name": profile.full_name,
        "biography": profile.biography,
        "followers": analysis.facts.followers,
        "following": analysis.facts.following,
        "posts_count": analysis.facts.posts_count,
        "is_verified": profile.is_verified,
        "is_business": profile.is_business,
        "category": profile.category,
        "picture_url": profile.picture_url,
        "external_urls": profile.external_urls,
        "tier": analysis.score.tier,
        "score": analysis.score.total,
        "niche": analysis.niche,
        "search_text": searchable(analysis.key.username, profile.full_name, profile.biography),
        "niche_key": searchable(analysis.niche),
        "scraped_at": analysis.scraped_at,
    }


def _analysis_row(analysis: Analysis) -> dict[str, Any]:
    score = analysis.score
    return {
        "account_id": analysis.key.account_id,
        "id": analysis.id,
        "business_profile_id": analysis.key.business_profile_id,
        "username": analysis.key.username,
        "analysis_type": analysis.analysis_type,
        "score": score.total,
        "tier": score.tier,
        "niche_fit": score.niche_fit,
        "engagement": score.engagement,
        "confidence": score.confidence,
        "niche": analysis.niche,
        "result": analysis,
        "is_cached": analysis.is_cached,
        "is_simulated": analysis.is_simulated,
        "user_id": analysis.user_id,
        "scraped_at": analysis.scraped_at,
    }
