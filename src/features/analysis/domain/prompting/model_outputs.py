"""Output schemas for models. Descriptions, bounds and docstrings of these classes are part of the prompt.

Every field is required, every list bounded, every choice closed, and no field holds an address or an
instruction, so a prompt injection can produce no more than fits the schema. Text bounds are generous,
because providers do not enforce them and an output that exceeds one has to be requested again.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Percent = Annotated[int, Meta(ge=0, le=100)]
Confidence = Annotated[
    float, Meta(ge=0, le=1, description="How sure you are: 1 only when posts and facts leave no doubt.")
]
Name = Annotated[str, Meta(max_length=500, description="A few words.")]
Sentence = Annotated[str, Meta(max_length=1_000, description="One sentence.")]
Paragraph = Annotated[str, Meta(max_length=4_000, description="Two to four sentences.")]
Label = Annotated[str, Meta(max_length=100, description="A post's label as shown, such as p3.")]
Evidence = Annotated[
    tuple[Label, ...],
    Meta(max_length=10, description="Labels of the posts that show it. Only labels that are shown."),
]
Names = Annotated[tuple[Name, ...], Meta(max_length=12)]
# A closed list, because providers do not enforce a pattern.
Language = Literal[
    "ar", "bg", "bn", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr", "hu",
    "id", "it", "ja", "ko", "lt", "lv", "ms", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv",
    "th", "tl", "tr", "uk", "ur", "vi", "zh", "other",
]  # fmt: skip
Level = Literal["none", "low", "medium", "high", "unknown"]


class ModelOutput(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Reason(ModelOutput, frozen=True, kw_only=True):
    effect: Annotated[Literal["for", "against"], Meta(description="Whether it speaks for the lead or not.")]
    text: Sentence
    evidence: Evidence


class Point(ModelOutput, frozen=True, kw_only=True):
    """Something that was noticed, and where."""

    text: Sentence
    evidence: Evidence


Points = Annotated[tuple[Point, ...], Meta(max_length=8)]


class Judgement(ModelOutput, frozen=True, kw_only=True):
    """Reasons come first, so that scores follow from them."""

    summary: Paragraph
    niche: Annotated[str, Meta(max_length=500, description="The profile's main niche in one to four words.")]
    reasons: Annotated[
        tuple[Reason, ...], Meta(max_length=10, description="What the scores rest on, the weightiest first.")
    ]
    niche_fit: Annotated[Percent, Meta(description="How well the niche fits the ideal customer.")]
    engagement_quality: Annotated[
        Percent, Meta(description="How real and how valuable the audience's reactions are.")
    ]
    overall: Annotated[Percent, Meta(description="How good a lead this is for the business, all in all.")]
    confidence: Confidence


class LightOutput(Judgement, frozen=True, kw_only=True):
    pass


class DeepCoreOutput(Judgement, frozen=True, kw_only=True):
    audience: Annotated[Paragraph, Meta(description="Who follows this profile, and why.")]
    content_themes: Names
    strengths: Points
    risks: Points
    buying_signals: Points
    partnership_ideas: Annotated[tuple[Sentence, ...], Meta(max_length=6)]


class Message(ModelOutput, frozen=True, kw_only=True):
    channel: Literal["direct_message", "email", "comment"]
    subject: Annotated[str, Meta(max_length=500, description="Of an e-mail; empty otherwise.")]
    opening: Annotated[Sentence, Meta(description="One sentence about something they did.")]
    message: Annotated[
        str,
        Meta(
            max_length=4_000, description="The rest of the message, without links and without other handles."
        ),
    ]


class OutreachOutput(ModelOutput, frozen=True, kw_only=True):
    language: Annotated[Language, Meta(description="In which the messages are written.")]
    talking_points: Points
    avoid: Annotated[tuple[Sentence, ...], Meta(max_length=8, description="What to leave unsaid, and why.")]
    messages: Annotated[
        tuple[Message, ...], Meta(min_length=1, max_length=4, description="Variants, the best first.")
    ]


class PersonalityOutput(ModelOutput, frozen=True, kw_only=True):
    """Of the public persona; nothing about health, faith, politics, origin or love."""

    summary: Paragraph
    tone: Annotated[Names, Meta(description="Words for how they write.")]
    communication_style: Literal["direct", "warm", "playful", "analytical", "inspirational", "reserved"]
    decision_style: Literal["fast", "deliberate", "relationship_first", "evidence_first", "unknown"]
    openness: Percent
    conscientiousness: Percent
    extraversion: Percent
    agreeableness: Percent
    emotional_stability: Percent
    how_to_approach: Points
    confidence: Confidence


class PsychographicOutput(ModelOutput, frozen=True, kw_only=True):
    summary: Paragraph
    core_values: Points
    motivations: Points
    interests: Names
    frustrations: Points
    persuasion_angles: Points
    receptiveness: Annotated[Percent, Meta(description="How open they are to an offer such as this one.")]
    confidence: Confidence


class CommercialOutput(Judgement, frozen=True, kw_only=True):
    purchase_readiness: Level
    budget_level: Level
    sponsored_content: Annotated[Level, Meta(description="How much of what is shown is paid for by brands.")]
    brand_partnerships: Names
    buying_signals: Points
    objections: Points
    best_offer: Annotated[Paragraph, Meta(description="Which offer of the business to make, and how.")]
