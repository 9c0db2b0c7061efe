"""What a customer pays for: a profile looked at, judged and scored on behalf of a business."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from features.analysis.domain.answers import (
    CommercialAnswer,
    DeepCoreAnswer,
    LightAnswer,
    OutreachAnswer,
    PersonalityAnswer,
    PsychographicAnswer,
)
from features.analysis.domain.cleaning import Removal
from features.analysis.domain.comparison import Comparison
from features.analysis.domain.facts import Facts
from features.analysis.domain.fit import Fit
from features.analysis.domain.leads import BusinessProfileId, Lead, LeadId, LeadKey
from features.analysis.domain.profile import AnalysisType, Profile
from features.analysis.domain.scoring import Score, Tier
from shared.ids import RunId

CAPTION_LENGTH_MAX = 280


class Answers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which there are depends on the type, see ``prompts.FORMS``; the names are the same."""

    light: LightAnswer | None = None
    core: DeepCoreAnswer | None = None
    outreach: OutreachAnswer | None = None
    personality: PersonalityAnswer | None = None
    psychographic: PsychographicAnswer | None = None
    commercial: CommercialAnswer | None = None


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
    fit: Fit
    score: Score
    niche: str
    answers: Answers
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


class KeptAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    analysis: Analysis
    lead_id: LeadId
    created_at: datetime


class KnownLead(msgspec.Struct, frozen=True, kw_only=True):
    """``comparison`` is to the look before the last one; None when there was none."""

    lead: Lead
    latest: AnalysisEntry
    comparison: Comparison | None


class SavedLead(msgspec.Struct, frozen=True, kw_only=True):
    lead_id: UUID
    is_new: bool
