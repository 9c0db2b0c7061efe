"""What a client gets of an analysis."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from features.analysis.controllers.model_answers import AnswersOut, Out, ReasonOut
from features.analysis.domain.analysis import AnalysisEntry, EvidencePost, KeptAnalysis
from features.analysis.domain.cleaning import Removal
from features.analysis.domain.facts import Facts
from features.analysis.domain.fit import Fit, Match
from features.analysis.domain.profile import AnalysisType, Platform
from features.analysis.domain.scoring import Component, Tier


class AnalysisEntryOut(Out, frozen=True, kw_only=True):
    id: UUID
    lead_id: UUID
    business_profile_id: UUID
    username: str
    type: AnalysisType
    status: Literal["completed"]
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


class AnalysesOut(Out, frozen=True, kw_only=True):
    items: list[AnalysisEntryOut]
    next_cursor: str | None


class AnalysedProfileOut(Out, frozen=True, kw_only=True):
    platform: Platform
    username: str
    id: str
    full_name: str
    biography: str
    external_urls: list[str]
    followers_count: int
    following_count: int
    posts_count: int
    highlights_count: int
    is_private: bool
    is_verified: bool
    is_business: bool
    category: str
    picture_url: str
    related_usernames: list[str]


class FitOut(Out, frozen=True, kw_only=True):
    share: float | None
    matches: list[Match]
    exclusions: list[Match]
    post_ids: list[str]


class AnalysisOut(AnalysisEntryOut, frozen=True, kw_only=True):
    """``score`` is the sum of its components' points."""

    profile: AnalysedProfileOut
    facts: Facts
    fit: FitOut
    components: list[Component]
    evidence_dropped: int
    reasons: list[ReasonOut]
    evidence: list[EvidencePost]
    answers: AnswersOut
    removals: list[Removal]
    models: list[str]


def entry_out(entry: AnalysisEntry) -> AnalysisEntryOut:
    return msgspec.convert({**msgspec.structs.asdict(entry), "type": entry.analysis_type}, AnalysisEntryOut)


def analysis_out(kept: KeptAnalysis) -> AnalysisOut:
    analysis, score = kept.analysis, kept.analysis.score
    answers = msgspec.convert(analysis.answers, AnswersOut, from_attributes=True)
    return AnalysisOut(
        id=analysis.id,
        lead_id=kept.lead_id,
        business_profile_id=analysis.key.business_profile_id,
        username=analysis.key.username,
        type=analysis.analysis_type,
        status="completed",
        score=score.total,
        tier=score.tier,
        niche_fit=score.niche_fit,
        engagement=score.engagement,
        confidence=score.confidence,
        niche=analysis.niche,
        is_cached=analysis.is_cached,
        is_simulated=analysis.is_simulated,
        user_id=analysis.user_id,
        scraped_at=analysis.scraped_at,
        created_at=kept.created_at,
        profile=msgspec.convert(analysis.profile, AnalysedProfileOut, from_attributes=True),
        facts=analysis.facts,
        fit=_fit_out(analysis.fit),
        components=[*score.components],
        evidence_dropped=score.evidence_dropped,
        reasons=answers.reasons,
        evidence=[*analysis.evidence],
        answers=answers,
        removals=[*analysis.removals],
        models=[*analysis.models],
    )


def _fit_out(fit: Fit) -> FitOut:
    return FitOut(
        share=fit.share,
        matches=[*fit.matches],
        exclusions=[*fit.exclusions],
        post_ids=sorted(fit.post_ids),
    )
