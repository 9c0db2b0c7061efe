"""What models answered, as a client gets it. What they were asked to fill in is described to them, not to
clients, and Litestar does not understand those forms' lists.
"""

from typing import Literal

import msgspec

from features.analysis.domain.answers import Language, Level


class Out(msgspec.Struct, frozen=True, kw_only=True):
    pass


class ReasonOut(Out, frozen=True, kw_only=True):
    """``evidence`` has labels of posts."""

    effect: Literal["for", "against"]
    text: str
    evidence: list[str]


class PointOut(Out, frozen=True, kw_only=True):
    text: str
    evidence: list[str]


class JudgementOut(Out, frozen=True, kw_only=True):
    summary: str
    niche: str
    reasons: list[ReasonOut]
    niche_fit: int
    engagement_quality: int
    overall: int
    confidence: float


class CoreOut(JudgementOut, frozen=True, kw_only=True):
    audience: str
    content_themes: list[str]
    strengths: list[PointOut]
    risks: list[PointOut]
    buying_signals: list[PointOut]
    partnership_ideas: list[str]


class MessageOut(Out, frozen=True, kw_only=True):
    channel: Literal["direct_message", "email", "comment"]
    subject: str
    opening: str
    message: str


class OutreachOut(Out, frozen=True, kw_only=True):
    language: Language
    talking_points: list[PointOut]
    avoid: list[str]
    messages: list[MessageOut]


class PersonalityOut(Out, frozen=True, kw_only=True):
    summary: str
    tone: list[str]
    communication_style: Literal["direct", "warm", "playful", "analytical", "inspirational", "reserved"]
    decision_style: Literal["fast", "deliberate", "relationship_first", "evidence_first", "unknown"]
    openness: int
    conscientiousness: int
    extraversion: int
    agreeableness: int
    emotional_stability: int
    how_to_approach: list[PointOut]
    confidence: float


class PsychographicOut(Out, frozen=True, kw_only=True):
    summary: str
    core_values: list[PointOut]
    motivations: list[PointOut]
    interests: list[str]
    frustrations: list[PointOut]
    persuasion_angles: list[PointOut]
    receptiveness: int
    confidence: float


class CommercialOut(JudgementOut, frozen=True, kw_only=True):
    purchase_readiness: Level
    budget_level: Level
    sponsored_content: Level
    brand_partnerships: list[str]
    buying_signals: list[PointOut]
    objections: list[PointOut]
    best_offer: str


class AnswersOut(Out, frozen=True, kw_only=True):
    """Null for what this type of analysis does not ask for."""

    light: JudgementOut | None
    core: CoreOut | None
    outreach: OutreachOut | None
    personality: PersonalityOut | None
    psychographic: PsychographicOut | None
    commercial: CommercialOut | None

    @property
    def reasons(self) -> list[ReasonOut]:
        """Of the one answer that judges."""
        judgement = self.light or self.core or self.commercial
        return [] if judgement is None else judgement.reasons
