"""What somebody asked for, and the run that carries it out, by name."""

from typing import Any

import msgspec

from features.analysis.domain.leads import BusinessProfileId
from features.analysis.domain.profile.profile import AnalysisType

BULK_KIND = "bulk_analysis"
ANONYMOUS_KIND = "anonymous_analysis"


class NewAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """``subject`` is the order as its run keeps it; ``msgspec.convert`` reads it back."""

    username: str  # as username_of gives it
    analysis_type: AnalysisType = msgspec.field(name="type")
    business_profile_id: BusinessProfileId | None  # None: of a visitor without an account
    is_fresh: bool = False  # what was seen before is not good enough

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
    """The same for each of a number of usernames, which are kept as rows of their own."""

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
