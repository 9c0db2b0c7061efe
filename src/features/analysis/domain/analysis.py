"""Analysis of a profile for a business: the result that a customer pays for."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from features.analysis.domain.profile.facts import Facts
from features.analysis.domain.profile.profile import Profile
from features.analysis.domain.prompting.model_outputs import (
    CommercialOutput,
    DeepCoreOutput,
    LightOutput,
    OutreachOutput,
    PersonalityOutput,
    PsychographicOutput,
)
from features.analysis.domain.prompting.output_sanitizer import Removal
from features.analysis.domain.scoring.icp_match import IcpMatch
from features.analysis.domain.scoring.scoring import Score
from shared.ids import AccountId, AnalysisType, BusinessProfileId, LeadId, Platform, RunId, Tier

CAPTION_LENGTH_MAX = 280
# Stands in for the business profile of an anonymous analysis.
NO_BUSINESS = BusinessProfileId(UUID(int=0))


class LeadKey(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of the lead that an analysis belongs to. The same profile is a different lead for another
    business.
    """

    account_id: AccountId
    business_profile_id: BusinessProfileId
    platform: Platform = "instagram"
    username: str  # normalized by username_of


class ModelOutputs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The analysis type determines which fields are set; the names are those in ``prompts.FORMS``."""

    light: LightOutput | None = None
    core: DeepCoreOutput | None = None
    outreach: OutreachOutput | None = None
    personality: PersonalityOutput | None = None
    psychographic: PsychographicOutput | None = None
    commercial: CommercialOutput | None = None


class EvidencePost(msgspec.Struct, frozen=True, kw_only=True):
    """A post cited by a reason or a score component, with the fields a reader needs to find it."""

    id: str
    label: str = ""  # the label in the prompt, which completions cite
    url: str
    caption: str
    posted_at: datetime | None


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """``id`` equals the id of its run, because a run produces at most one analysis. ``profile`` has no posts.

    Analyses are stored in this form, so every field added here or in a nested struct needs a default.
    """

    id: RunId
    key: LeadKey
    analysis_type: AnalysisType
    profile: Profile
    facts: Facts
    fit: IcpMatch
    score: Score
    niche: str
    answers: ModelOutputs
    evidence: tuple[EvidencePost, ...]
    removals: tuple[Removal, ...]  # text removed by ``output_sanitizer``
    models: tuple[str, ...]  # provider/model, each once
    scraped_at: datetime
    is_cached: bool  # no fetch was made for this analysis
    is_simulated: bool
    user_id: UUID | None  # the requesting user; None for an API key

    @property
    def is_anonymous(self) -> bool:
        return self.key.business_profile_id == NO_BUSINESS


class AnalysisEntry(msgspec.Struct, frozen=True, kw_only=True):
    """List entry of an analysis."""

    id: RunId
    lead_id: LeadId
    business_profile_id: BusinessProfileId
    username: str
    analysis_type: AnalysisType
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


class StoredAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    analysis: Analysis
    lead_id: LeadId
    created_at: datetime


class SavedLead(msgspec.Struct, frozen=True, kw_only=True):
    lead_id: UUID
    is_new: bool
