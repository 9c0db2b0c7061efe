from __future__ import annotations  # asyncpg's classes are generic in their stubs only

from typing import Any, LiteralString

import msgspec
from asyncpg import Record

from features.analysis.application.ports import AnalysisResults
from features.analysis.domain.analysis import Analysis, SavedLead
from features.leads.application.ports import LeadFilter, LeadStore
from features.leads.domain.comparison import Snapshot, compare
from features.leads.domain.errors import LeadAlreadyExists
from features.leads.domain.leads import RESTORABLE_FOR, Lead, LeadAnalysis, LeadDetails, Sort, searchable
from infrastructure.database.clients import AdminClient, Database
from shared.caller import Caller, no_account
from shared.ids import LeadId
from shared.pagination import Cursor, SortedCursor

SAVE: LiteralString = "select lead_id, is_new from leads.save($1, $2)"
LIST: LiteralString = (
    "select * from caller.leads($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
)
GET: LiteralString = "select * from caller.lead($1, $2, $3)"
HISTORY: LiteralString = "select * from caller.analyses($1, $2, $3, null, null, $4, $5, $6)"
DELETE: LiteralString = "select * from caller.delete_lead($1, $2, $3)"
RESTORE: LiteralString = "select * from caller.restore_lead($1, $2, $3, $4)"


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
        rows = await self._database.user(caller.claims).call(
            LIST,
            caller.chosen_account,
            filters.business_profile_id,
            filters.tiers or None,
            filters.score_min,
            filters.score_max,
            filters.niche and searchable(filters.niche),
            filters.words and searchable(filters.words),
            filters.analysis_type,
            RESTORABLE_FOR if filters.is_deleted else None,
            sort,
            after and str(after.value),
            after and after.id,
            leads_max,
        )
        if not rows:
            raise no_account(caller)
        return [_lead(row) for row in rows if row["id"] is not None]

    async def get(self, caller: Caller, lead_id: LeadId) -> LeadDetails | None:
        row = await self._one(caller, GET, lead_id)
        if row["lead"] is None:
            return None
        before, after = _snapshot(row["before"]), _snapshot(row["after"])
        return LeadDetails(
            **msgspec.structs.asdict(_lead(row["lead"])),
            latest_analysis=LeadAnalysis(**row["latest"]),
            comparison=compare(before, after) if before and after else None,
        )

    async def delete(self, caller: Caller, lead_id: LeadId) -> bool:
        return (await self._one(caller, DELETE, lead_id))["is_deleted"]

    async def restore(self, caller: Caller, lead_id: LeadId) -> Lead | None:
        row = await self._one(caller, RESTORE, lead_id, RESTORABLE_FOR)
        if row["outcome"] == "taken":
            raise LeadAlreadyExists(username=row["lead"]["username"])
        return _lead(row["lead"]) if row["outcome"] == "done" else None

    async def history(
        self, caller: Caller, lead_id: LeadId, *, after: Cursor | None, analyses_max: int
    ) -> list[LeadAnalysis] | None:
        at, analysis_id = (after.at, after.id) if after else (None, None)
        rows = await self._database.user(caller.claims).call(
            HISTORY, caller.chosen_account, lead_id, at, analysis_id, analyses_max
        )
        if not rows:
            raise no_account(caller)
        if rows[0]["known_lead"] is None:
            return None
        return [LeadAnalysis(**row["entry"]) for row in rows if row["entry"] is not None]

    async def _one(self, caller: Caller, statement: LiteralString, *args: object) -> Record:
        rows = await self._database.user(caller.claims).call(statement, caller.chosen_account, *args)
        if not rows:
            raise no_account(caller)
        return rows[0]


def _lead(row: Record) -> Lead:
    names = (name for name in Lead.__struct_fields__ if name != "external_urls")
    return Lead(external_urls=tuple(row["external_urls"]), **{name: row[name] for name in names})


def _snapshot(text: str | None) -> Snapshot | None:
    return None if text is None else msgspec.json.decode(text, type=Snapshot)


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
