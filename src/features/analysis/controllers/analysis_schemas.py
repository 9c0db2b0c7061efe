"""Response schemas of analyses."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from features.analysis.controllers.model_output_schemas import AnswersResponse, ReasonResponse, ResponseBody
from features.analysis.domain.analysis import AnalysisEntry, EvidencePost, StoredAnalysis
from features.analysis.domain.profile.facts import Facts
from features.analysis.domain.prompting.output_sanitizer import Removal
from features.analysis.domain.scoring.icp_match import Match
from features.analysis.domain.scoring.scoring import Component
from shared.http.responses import struct_from
from shared.ids import AnalysisType, Platform, Tier


class AnalysisEntryResponse(ResponseBody, frozen=True, kw_only=True):
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


class AnalysedProfileResponse(ResponseBody, frozen=True, kw_only=True):
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


class FitResponse(ResponseBody, frozen=True, kw_only=True):
    share: float | None
    matches: tuple[Match, ...]
    exclusions: tuple[Match, ...]
    post_ids: list[str]


class AnalysisResponse(AnalysisEntryResponse, frozen=True, kw_only=True):
    """``score`` is the sum of its components' points."""

    profile: AnalysedProfileResponse
    facts: Facts
    fit: FitResponse
    components: tuple[Component, ...]
    evidence_dropped: int
    reasons: list[ReasonResponse]
    evidence: tuple[EvidencePost, ...]
    answers: AnswersResponse
    removals: tuple[Removal, ...]
    models: tuple[str, ...]


def entry_response(entry: AnalysisEntry) -> AnalysisEntryResponse:
    return struct_from(AnalysisEntryResponse, entry, type=entry.analysis_type)


def analysis_response(stored: StoredAnalysis) -> AnalysisResponse:
    analysis, score = stored.analysis, stored.analysis.score
    answers = msgspec.convert(analysis.answers, AnswersResponse, from_attributes=True)
    return struct_from(
        AnalysisResponse,
        analysis,
        lead_id=stored.lead_id,
        business_profile_id=analysis.key.business_profile_id,
        username=analysis.key.username,
        type=analysis.analysis_type,
        status="completed",
        score=score.total,
        tier=score.tier,
        niche_fit=score.niche_fit,
        engagement=score.engagement,
        confidence=score.confidence,
        created_at=stored.created_at,
        profile=msgspec.convert(analysis.profile, AnalysedProfileResponse, from_attributes=True),
        fit=struct_from(FitResponse, analysis.fit, post_ids=sorted(analysis.fit.post_ids)),
        components=score.components,
        evidence_dropped=score.evidence_dropped,
        reasons=answers.reasons,
        answers=answers,
    )
