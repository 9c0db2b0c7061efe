"""Response schemas of leads, and the rows of the CSV export."""

import csv
import io
from collections.abc import AsyncIterator
from datetime import datetime
from uuid import UUID

import msgspec

from features.analysis.controllers.analysis_schemas import AnalysisEntryResponse, entry_out
from features.analysis.controllers.model_output_schemas import ResponseBody
from features.analysis.domain.analysis import ExistingLead
from features.analysis.domain.comparison import Comparison
from features.analysis.domain.leads import CSV_COLUMNS, Lead, csv_cells
from features.analysis.domain.profile.profile import AnalysisType, Platform
from features.analysis.domain.scoring.scoring import Tier


class LeadResponse(ResponseBody, frozen=True, kw_only=True):
    id: UUID
    business_profile_id: UUID
    platform: Platform
    username: str
    full_name: str
    biography: str
    followers: int
    following: int
    posts_count: int
    is_verified: bool
    is_business: bool
    category: str
    picture_url: str
    external_urls: list[str]
    tier: Tier
    score: int
    niche: str
    last_analysis_id: UUID
    last_analysis_type: AnalysisType
    last_analysed_at: datetime
    scraped_at: datetime
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    version: int


class LeadsResponse(ResponseBody, frozen=True, kw_only=True):
    items: list[LeadResponse]
    next_cursor: str | None


class ExistingLeadResponse(LeadResponse, frozen=True, kw_only=True):
    latest_analysis: AnalysisEntryResponse
    comparison: Comparison | None


def lead_out(lead: Lead) -> LeadResponse:
    return msgspec.convert(_fields(lead), LeadResponse)


def known_lead_out(known: ExistingLead) -> ExistingLeadResponse:
    return ExistingLeadResponse(
        **msgspec.structs.asdict(lead_out(known.lead)),
        latest_analysis=entry_out(known.latest),
        comparison=known.comparison,
    )


def _fields(lead: Lead) -> dict[str, object]:
    return {**msgspec.structs.asdict(lead), **msgspec.structs.asdict(lead.key)}


async def csv_text(chunks: AsyncIterator[list[Lead]]) -> AsyncIterator[str]:
    yield _csv_lines([CSV_COLUMNS])
    async for chunk in chunks:
        yield _csv_lines([csv_cells(lead) for lead in chunk])


def _csv_lines(rows: list[tuple[str, ...]]) -> str:
    lines = io.StringIO()
    csv.writer(lines).writerows(rows)
    return lines.getvalue()
