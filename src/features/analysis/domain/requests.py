"""Requested analyses, and the kind and deduplication key of their runs."""

from typing import Any

import msgspec

from shared.ids import AnalysisType, BusinessProfileId

BULK_KIND = "bulk_analysis"
ANONYMOUS_KIND = "anonymous_analysis"


class NewAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """``subject`` is the request as stored with its run; ``msgspec.convert`` decodes it."""

    username: str  # normalized by username_of
    analysis_type: AnalysisType = msgspec.field(name="type")
    business_profile_id: BusinessProfileId | None  # None for a visitor without an account
    is_fresh: bool = False  # bypasses the profile cache

    @property
    def kind(self) -> str:
        return f"{self.analysis_type}_analysis" if self.business_profile_id else ANONYMOUS_KIND

    @property
    def dedup_key(self) -> str:
        return f"analysis:{self.analysis_type}:{self.business_profile_id}:{self.username}"

    @property
    def subject(self) -> dict[str, Any]:
        return msgspec.to_builtins(self)


class NewBulkAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """The same analysis for each of ``count`` usernames, which are stored as separate rows."""

    analysis_type: AnalysisType = msgspec.field(name="type")
    business_profile_id: BusinessProfileId
    is_fresh: bool = False
    count: int

    @property
    def subject(self) -> dict[str, Any]:
        return msgspec.to_builtins(self)

    def of(self, username: str) -> NewAnalysis:
        return NewAnalysis(
            username=username,
            analysis_type=self.analysis_type,
            business_profile_id=self.business_profile_id,
            is_fresh=self.is_fresh,
        )
