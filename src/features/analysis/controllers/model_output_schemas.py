"""Response schemas of model outputs. Separate from the domain's output schemas, because their descriptions
address models and Litestar does not support their annotated lists.
"""

from typing import Literal

import msgspec

from features.analysis.domain.prompting.model_outputs import Language, Level


class ResponseBody(msgspec.Struct, frozen=True, kw_only=True):
    pass


class ReasonResponse(ResponseBody, frozen=True, kw_only=True):
    """``evidence`` holds labels of posts."""

    effect: Literal["for", "against"]
    text: str
    evidence: list[str]


class PointResponse(ResponseBody, frozen=True, kw_only=True):
    text: str
    evidence: list[str]


class JudgementResponse(ResponseBody, frozen=True, kw_only=True):
    summary: str
    niche: str
    reasons: list[ReasonResponse]
    niche_fit: int
    engagement_quality: int
    overall: int
    confidence: float


class CoreResponse(JudgementResponse, frozen=True, kw_only=True):
    audience: str
    content_themes: list[str]
    strengths: list[PointResponse]
    risks: list[PointResponse]
    buying_signals: list[PointResponse]
    partnership_ideas: list[str]


class MessageResponse(ResponseBody, frozen=True, kw_only=True):
    channel: Literal["direct_message", "email", "comment"]
    subject: str
    opening: str
    message: str


class OutreachResponse(ResponseBody, frozen=True, kw_only=True):
    language: Language
    talking_points: list[PointResponse]
    avoid: list[str]
    messages: list[MessageResponse]


class PersonalityResponse(ResponseBody, frozen=True, kw_only=True):
    summary: str
    tone: list[str]
    communication_style: Literal["direct", "warm", "playful", "analytical", "inspirational", "reserved"]
    decision_style: Literal["fast", "deliberate", "relationship_first", "evidence_first", "unknown"]
    openness: int
    conscientiousness: int
    extraversion: int
    agreeableness: int
    emotional_stability: int
    how_to_approach: list[PointResponse]
    confidence: float


class PsychographicResponse(ResponseBody, frozen=True, kw_only=True):
    summary: str
    core_values: list[PointResponse]
    motivations: list[PointResponse]
    interests: list[str]
    frustrations: list[PointResponse]
    persuasion_angles: list[PointResponse]
    receptiveness: int
    confidence: float


class CommercialResponse(JudgementResponse, frozen=True, kw_only=True):
    purchase_readiness: Level
    budget_level: Level
    sponsored_content: Level
    brand_partnerships: list[str]
    buying_signals: list[PointResponse]
    objections: list[PointResponse]
    best_offer: str


class AnswersResponse(ResponseBody, frozen=True, kw_only=True):
    """Null for outputs that this type of analysis does not request."""

    light: JudgementResponse | None
    core: CoreResponse | None
    outreach: OutreachResponse | None
    personality: PersonalityResponse | None
    psychographic: PsychographicResponse | None
    commercial: CommercialResponse | None

    @property
    def reasons(self) -> list[ReasonResponse]:
        """Reasons of the one output that contains a judgement."""
        judgement = self.light or self.core or self.commercial
        return [] if judgement is None else judgement.reasons
