"""Somebody who was analysed for a business, as lists and spreadsheets show them."""

import unicodedata
from datetime import datetime, timedelta
from typing import Literal, NewType
from uuid import UUID

import msgspec

from features.analysis.domain.profile.profile import AnalysisType, Platform
from features.analysis.domain.profile.text import plain
from features.analysis.domain.scoring.scoring import Tier
from shared.ids import AccountId

LeadId = NewType("LeadId", UUID)
BusinessProfileId = NewType("BusinessProfileId", UUID)

Sort = Literal["-last_analysed_at", "-score", "score", "username", "-followers"]

RESTORABLE_FOR = timedelta(days=30)
# By what a list can be sorted, a minus for the greatest first, and what kind of value that is.
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
# What makes a spreadsheet take a text for a formula, in its wide spellings, too.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


class LeadKey(msgspec.Struct, frozen=True, kw_only=True):
    """Who a lead is. The same person is another lead for another business."""

    account_id: AccountId
    business_profile_id: BusinessProfileId
    platform: Platform = "instagram"
    username: str  # as username_of gives it


class Lead(msgspec.Struct, frozen=True, kw_only=True):
    """As its last analysis left it: of two, the one whose look at the profile was the later."""

    id: LeadId
    key: LeadKey
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
    scraped_at: datetime  # when somebody last looked at the profile
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    version: int  # rises with every analysis

    def sorted_by(self, sort: Sort) -> datetime | int | str:
        return self.key.username if sort == "username" else getattr(self, sort.lstrip("-"))


def searchable(*texts: str) -> str:
    """The same for every case, width and composition, without what cannot be seen."""
    return "\n".join(unicodedata.normalize("NFKC", plain(text).casefold()) for text in texts)


def csv_cells(lead: Lead) -> tuple[str, ...]:
    """In the order of CSV_COLUMNS, each safe to open in a spreadsheet."""
    cells = (
        lead.key.username,
        lead.full_name,
        lead.followers,
        lead.tier,
        lead.score,
        lead.niche,
        lead.last_analysis_type,
        lead.last_analysed_at.isoformat(),
    )
    return tuple(_guarded(cell) if isinstance(cell, str) else str(cell) for cell in cells)


def _guarded(text: str) -> str:
    """Marked as text where a stranger's name would run as a formula."""
    text = text.replace("\0", "")
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
