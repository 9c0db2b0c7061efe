"""What a customer pays for: a profile looked at, judged and scored on behalf of a business."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from features.analysis.domain.comparison import Comparison
from features.analysis.domain.leads import BusinessProfileId, Lead, LeadId, LeadKey
from features.analysis.domain.profile.facts import Facts
from features.analysis.domain.profile.profile import AnalysisType, Profile
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
from features.analysis.domain.scoring.scoring import Score, Tier
from shared.ids import RunId

CAPTION_LENGTH_MAX = 280


class ModelOutputs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which there are depends on the type, see ``prompts.FORMS``; the names are the same."""

    light: LightOutput | None = None
    core: DeepCoreOutput | None = None
    outreach: OutreachOutput | None = None
    personality: PersonalityOutput | None = None
    psychographic: PsychographicOutput | None = None
    commercial: CommercialOutput | None = None


class EvidencePost(msgspec.Struct, frozen=True, kw_only=True):
    """A post that a reason or a part of the score names, as much of it as a reader needs to find it."""

    id: str
    label: str = ""  # under which models were shown it, and answers name it
    url: str
    caption: str
    posted_at: datetime | None


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """``id`` is its run's: a run that delivers, delivers one. ``profile`` is without its posts.

    It is kept as it is, so what is added to it, or to its parts, needs a default.
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
    removals: tuple[Removal, ...]  # what was taken out of the answers, see ``cleaning``
    models: tuple[str, ...]  # provider/model, each once
    scraped_at: datetime
    is_cached: bool  # nobody looked at the profile for this one
    is_simulated: bool
    user_id: UUID | None  # who asked for it, where it was a person


class AnalysisEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An analysis as lists show it."""

    id: RunId
    lead_id: LeadId
    business_profile_id: BusinessProfileId
    username: str
    analysis_type: AnalysisType
    status: Literal["completed"]  # what does not complete leaves a run, and no analysis
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


class ExistingLead(msgspec.Struct, frozen=True, kw_only=True):
    """``comparison`` is to the look before the last one; None when there was none."""

    lead: Lead
    latest: AnalysisEntry
    comparison: Comparison | None


class SavedLead(msgspec.Struct, frozen=True, kw_only=True):
    lead_id: UUID
    is_new: bool
