from __future__ import annotations  # asyncpg's classes are generic in their stubs only

from typing import Any, LiteralString

import msgspec
from asyncpg import Record

from features.analysis.application.ports import AnalysisResults, LeadFilter, LeadStore
from features.analysis.domain.analysis import Analysis, ExistingLead, SavedLead
from features.analysis.domain.comparison import Snapshot, compared
from features.analysis.domain.errors import LeadAlreadyExists
from features.analysis.domain.leads import RESTORABLE_FOR, Lead, LeadId, LeadKey, Sort, searchable
from infrastructure.database.analysis.analyses import analysis_entry
from infrastructure.database.clients import AdminClient, Database
from shared.caller import Caller, no_account
from shared.pagination import SortedCursor

SAVE: LiteralString = "select lead_id, is_new from leads.save($1, $2)"
LIST: LiteralString = (
    "select * from caller.leads($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
)
GET: LiteralString = "select * from caller.lead($1, $2, $3)"
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
        self, caller: Caller, only: LeadFilter, *, sort: Sort, after: SortedCursor | None, leads_max: int
    ) -> list[Lead]:
        rows = await self._database.user(caller.claims).call(
            LIST,
            caller.chosen_account,
            only.business_profile_id,
            only.tiers or None,
            only.score_min,
            only.score_max,
            only.niche and searchable(only.niche),
            only.words and searchable(only.words),
            only.analysis_type,
            RESTORABLE_FOR if only.is_deleted else None,
            sort,
            after and str(after.value),
            after and after.id,
            leads_max,
        )
        if not rows:
            raise no_account(caller)
        return [_lead(row) for row in rows if row["id"] is not None]

    async def get(self, caller: Caller, lead_id: LeadId) -> ExistingLead | None:
        row = await self._one(caller, GET, lead_id)
        if row["lead"] is None:
            return None
        before, after = _snapshot(row["before"]), _snapshot(row["after"])
        return ExistingLead(
            lead=_lead(row["lead"]),
            latest=analysis_entry(row["latest"]),
            comparison=compared(before, after) if before and after else None,
        )

    async def delete(self, caller: Caller, lead_id: LeadId) -> bool:
        return (await self._one(caller, DELETE, lead_id))["is_deleted"]

    async def restore(self, caller: Caller, lead_id: LeadId) -> Lead | None:
        row = await self._one(caller, RESTORE, lead_id, RESTORABLE_FOR)
        if row["outcome"] == "taken":
            raise LeadAlreadyExists(username=row["lead"]["username"])
        return _lead(row["lead"]) if row["outcome"] == "done" else None

    async def _one(self, caller: Caller, statement: LiteralString, *args: object) -> Record:
        rows = await self._database.user(caller.claims).call(statement, caller.chosen_account, *args)
        if not rows:
            raise no_account(caller)
        return rows[0]


def _lead(row: Record) -> Lead:
    names = (name for name in Lead.__struct_fields__ if name not in {"key", "external_urls"})
    return Lead(
        key=LeadKey(**{name: row[name] for name in LeadKey.__struct_fields__}),
        external_urls=tuple(row["external_urls"]),
        **{name: row[name] for name in names},
    )


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
