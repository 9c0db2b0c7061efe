"""Lead: a profile that was analysed for a business."""

import unicodedata
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import msgspec

from features.leads.domain.comparison import Comparison
from shared.ids import AnalysisType, BusinessProfileId, LeadId, Platform, RunId, Tier
from shared.text import plain

Sort = Literal["-last_analysed_at", "-score", "score", "username", "-followers"]

RESTORABLE_FOR = timedelta(days=30)
# Allowed sort orders (a minus means descending) and the type of the sorted value.
SORTS: dict[str, type[datetime | int | str]] = {
    "-last_analysed_at": datetime,
    "-score": int,
    "score": int,
    "username": str,
    "-followers": int,
}
CSV_COLUMNS = (
    "username",
    "full_name",
    "followers",
    "tier",
    "score",
    "niche",
    "last_analysis_type",
    "last_analysed_at",
)


class Lead(msgspec.Struct, frozen=True, kw_only=True):
    """State after the analysis with the latest ``scraped_at``, which need not be the last one that ended."""

    id: LeadId
    business_profile_id: BusinessProfileId
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
    external_urls: tuple[str, ...]
    tier: Tier
    score: int
    niche: str
    last_analysis_id: UUID
    last_analysis_type: AnalysisType
    last_analysed_at: datetime
    scraped_at: datetime  # when the profile was last fetched
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    version: int  # incremented by every analysis

    def sorted_by(self, sort: Sort) -> datetime | int | str:
        return getattr(self, sort.lstrip("-"))


class LeadAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """Entry in the history of a lead."""

    id: RunId
    lead_id: LeadId
    business_profile_id: BusinessProfileId
    username: str
    analysis_type: AnalysisType = msgspec.field(name="type")
    status: Literal["completed"]  # a run that does not complete stores no analysis
    score: int
    tier: Tier
    niche_fit: int
    engagement: int
    confidence: int
    niche: str
    is_cached: bool
    is_simulated: bool
    user_id: UUID | None
    scraped_at: datetime
    created_at: datetime


class LeadDetails(Lead, frozen=True, kw_only=True):
    """``comparison`` is with the previous analysis by ``scraped_at``; None when there is none."""

    latest_analysis: LeadAnalysis
    comparison: Comparison | None


def searchable(*texts: str) -> str:
    """Normalized for search: equal for every case, width and composition, without invisible characters."""
    return "\n".join(unicodedata.normalize("NFKC", plain(text).casefold()) for text in texts)
