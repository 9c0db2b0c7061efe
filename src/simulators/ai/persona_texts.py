"""Persona of a simulated analysis: personality, values and motives that captions show."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from simulators.ai.analysis_texts import introduction, points
from simulators.ai.assessment import MIDDLE, listed, scores_of
from simulators.ai.profile_prompt import PromptProfile
from simulators.faults.provider_requests import Document

POSTS_FOR_A_TREND = 2


class Habit(msgspec.Struct, frozen=True, kw_only=True):
    """A way of writing, and what it shows about the persona."""

    pattern: str
    tone: str
    value: str
    motive: str
    approach: str
    frustration: str = ""


HABITS = (
    Habit(
        pattern=r"save this|learned|notes?\b|tips?\b|how to",
        tone="instructive",
        value="Useful knowledge: captions explain and invite readers to save them.",
        motive="To teach: posts are built as lessons that a reader can apply.",
        approach="Bring something that readers can learn from, not only a product.",
    ),
    Habit(
        pattern=r"longer than planned|no hurry|start small|slow|two-day|patien",
        tone="calm",
        value="Care: good work may take its time.",
        motive="To do things well and without haste.",
        approach="Leave time to decide and name no deadline.",
        frustration="Things that take longer than planned.",
    ),
    Habit(
        pattern=r"wrong for years|wish i had known|mistake|first try|failed",
        tone="candid",
        value="Honesty: mistakes and first tries are shown.",
        motive="To save others the mistakes made on the way.",
        approach="Be open about what the offer cannot do.",
        frustration="Advice that came too late: several posts are about what went wrong first.",
    ),
    Habit(
        pattern=r"\?|tell me|you asked|write to me",
        tone="inviting",
        value="Conversation: readers are asked and answered.",
        motive="To hear from readers: posts end with a question or answer one.",
        approach="Ask one open question, as the captions do.",
    ),
)


def personality(profile: PromptProfile) -> Document:
    habits = _habits(profile)
    tones = [habit.tone for habit in habits] or ["neutral"]
    shares = {habit.tone: len(labels) / max(1, len(profile.posts)) for habit, labels in habits.items()}
    regularity = profile.number("posting_regularity")
    is_patient = shares.get("calm", 0) > shares.get("inviting", 0)
    return {
        "summary": (
            f"{introduction(profile)}. The tone of the captions is {listed(tones)};"
            f" {'readers are addressed directly' if 'inviting' in tones else 'readers are seldom addressed'}."
        ),
        "tone": tones,
        "communication_style": _style(tones),
        "decision_style": "deliberate" if is_patient else "relationship_first" if habits else "unknown",
        "openness": _trait(len(profile.tags) / 10),
        "conscientiousness": _trait(regularity) if regularity else MIDDLE,
        "extraversion": _trait(shares.get("inviting", 0.4)),
        "agreeableness": _trait(0.4 + profile.number("comments_share_percent") / 10),
        "emotional_stability": _trait(0.5 + shares.get("calm", 0) / 3),
        "how_to_approach": points((habit.approach, labels) for habit, labels in habits.items()),
        "confidence": scores_of(profile).confidence,
    }


def psychographic(profile: PromptProfile) -> Document:
    habits, scores = _habits(profile), scores_of(profile)
    audience = profile.niche.audience if profile.niche else "the readers"
    values = listed(habit.value.partition(":")[0].lower() for habit in habits) or "little that the posts show"
    return {
        "summary": (
            f"{introduction(profile)}. What counts here: {values}. Writes for {audience},"
            f" and an offer is read {'with interest' if scores.overall >= MIDDLE else 'with reserve'}."
        ),
        "core_values": points((habit.value, labels) for habit, labels in habits.items()),
        "motivations": points((habit.motive, labels) for habit, labels in habits.items()),
        "interests": [f"#{tag}" for tag in list(profile.tags)[:6]] or [profile.niche_name],
        "frustrations": points(
            (habit.frustration, labels) for habit, labels in habits.items() if habit.frustration
        ),
        "persuasion_angles": points(_angles(profile)),
        "receptiveness": round((scores.overall + scores.niche_fit) / 2),
        "confidence": scores.confidence,
    }


def _angles(profile: PromptProfile) -> Iterator[tuple[str, Iterable[str]]]:
    name = profile.business.name
    for term, labels in list(profile.matched.items())[:2]:
        text = f"Start from {term}: the profile writes about it, and {name} has something to add."
        yield text, labels
    promise = profile.business.texts.get("value_proposition", "").rstrip(".")
    if promise:
        yield f"Show in one concrete example what {name} promises: {promise}.", ()
    if not profile.matched:
        yield f"Ask first whether {profile.niche_name} and {name} go together for the readers.", ()


def _habits(profile: PromptProfile) -> dict[Habit, list[str]]:
    """Labels of the posts that show a habit; habits of too few posts are left out."""
    found = {
        habit: [
            post.label
            for post in profile.posts
            if post.quote and re.search(habit.pattern, post.caption, re.IGNORECASE)
        ]
        for habit in HABITS
    }
    return {habit: labels for habit, labels in found.items() if len(labels) >= POSTS_FOR_A_TREND}


def _style(tones: list[str]) -> str:
    styles = {"inviting": "warm", "instructive": "analytical", "candid": "direct", "calm": "reserved"}
    return next((style for tone, style in styles.items() if tone in tones), "reserved")


def _trait(share: float) -> int:
    """50 for one half, and never far from it, because captions show little."""
    return round(35 + 30 * min(1.0, max(0.0, share)))
