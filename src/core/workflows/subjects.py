"""What runs of analysis are asked to do, as their rows say it."""

from uuid import UUID

import msgspec

from features.analysis.application.conclusions import AnalysisRequest
from features.analysis.domain.leads import BusinessProfileId
from features.analysis.domain.profile import AnalysisType
from features.runs.domain.run import Run

KINDS: dict[AnalysisType, str] = {
    "light": "light_analysis",
    "deep": "deep_analysis",
    "xray": "xray_analysis",
}
ANONYMOUS_KIND = "anonymous_analysis"
BULK_KIND = "bulk_analysis"
RUNS_QUEUE = "runs"
TRANSACTION_TYPE = "analysis"


class AnalysisSubject(msgspec.Struct, frozen=True, kw_only=True):
    username: str
    type: AnalysisType
    business_profile_id: UUID | None
    is_fresh: bool

    @property
    def dedup_key(self) -> str:
        return f"analysis:{self.type}:{self.business_profile_id}:{self.username}"


class BulkSubject(msgspec.Struct, frozen=True, kw_only=True):
    type: AnalysisType
    business_profile_id: UUID
    is_fresh: bool
    count: int


def request_of(run: Run) -> AnalysisRequest:
    subject = msgspec.convert(run.subject, AnalysisSubject)
    chosen = subject.business_profile_id
    return AnalysisRequest(
        run_id=run.id,
        account_id=run.account_id,
        user_id=run.user_id,
        username=subject.username,
        analysis_type=subject.type,
        business_profile_id=None if chosen is None else BusinessProfileId(chosen),
        is_fresh=subject.is_fresh,
    )
