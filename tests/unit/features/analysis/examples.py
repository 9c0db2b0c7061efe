"""Example profile, model outputs and business, which each test modifies."""

import uuid
from datetime import timedelta
from uuid import UUID

import msgspec

from features.analysis.domain.analysis import Analysis, EvidencePost, LeadKey, ModelOutputs
from features.analysis.domain.profile.facts import facts_of
from features.analysis.domain.profile.profile import Post, Profile, Scrape
from features.analysis.domain.prompting.excerpts import excerpt_of
from features.analysis.domain.prompting.model_outputs import (
    CommercialOutput,
    DeepCoreOutput,
    LightOutput,
    Message,
    OutreachOutput,
    PersonalityOutput,
    Point,
    PsychographicOutput,
    Reason,
)
from features.analysis.domain.prompting.output_sanitizer import Removal
from features.analysis.domain.prompting.prompts import prompts_for
from features.analysis.domain.scoring.icp_match import fit_of
from features.analysis.domain.scoring.ideal_customer import Business, IdealCustomer
from features.analysis.domain.scoring.scoring import score_of
from shared.ids import AccountId, BusinessProfileId, RunId
from shared.llm import CostOwner
from tests.support import NOON

COST_OWNER = CostOwner(account_id=AccountId(UUID(int=1)), run_id=UUID(int=2))
PREFIX = """\
<business_profile>
<website>
https://alpine-coffee.example/shop
</website>
</business_profile>
"""
BUSINESS = Business(
    prompt_prefix=PREFIX,
    ideal_customer=IdealCustomer(niches=("sourdough bread", "coffee"), geographies=("Vienna",)),
)


def days_before(days):
    return NOON - timedelta(days=days)


def post(number, **fields):
    usual = {
        "id": f"180{number:04}",
        "kind": "image",
        "caption": f"Loaf number {number}",
        "likes_count": 250 + 40 * (number % 5),
        "comments_count": 10,
        "posted_at": days_before(2 * number + 2),
    }
    return Post(**{**usual, **fields})


def profile(**fields):
    usual = {
        "username": "ana.bakes",
        "full_name": "Ana Novak",
        "biography": "Bread from a small oven.",
        "category": "Bakery",
        "followers_count": 12_000,
        "following_count": 300,
        "posts_count": 90,
        "posts": tuple(post(number) for number in range(8)),
    }
    return Profile(**{**usual, **fields})


def scrape(**fields):
    usual = {
        "outcome": "ok",
        "profile": profile(),
        "posts_asked": 12,
        "scraped_at": NOON,
        "provider": "simulator",
        "is_simulated": True,
    }
    return Scrape(**{**usual, **fields})


JUDGEMENT = {
    "summary": "Bakes.",
    "niche": "baking",
    "reasons": (Reason(effect="for", text="Bakes daily.", evidence=("p1", "p2")),),
    "niche_fit": 70,
    "engagement_quality": 60,
    "overall": 80,
    "confidence": 0.9,
}
LIGHT = LightOutput(**JUDGEMENT)
DEEP = DeepCoreOutput(
    **JUDGEMENT,
    audience="Home bakers.",
    content_themes=("bread",),
    strengths=(),
    risks=(),
    buying_signals=(),
    partnership_ideas=(),
)
COMMERCIAL = CommercialOutput(
    **JUDGEMENT,
    purchase_readiness="medium",
    budget_level="low",
    sponsored_content="none",
    brand_partnerships=(),
    buying_signals=(),
    objections=(),
    best_offer="A tasting.",
)
PSYCHOGRAPHIC = PsychographicOutput(
    summary="Patient.",
    core_values=(Point(text="Craft.", evidence=("p3",)),),
    motivations=(),
    interests=("bread",),
    frustrations=(),
    persuasion_angles=(),
    receptiveness=50,
    confidence=0.5,
)
OUTREACH = OutreachOutput(
    language="en",
    talking_points=(Point(text="The oven.", evidence=("p1",)),),
    avoid=("Prices.",),
    messages=(Message(channel="email", subject="Bread", opening="Hello.", message="Coffee?"),),
)
PERSONALITY = PersonalityOutput(
    summary="Calm.",
    tone=("plain",),
    communication_style="warm",
    decision_style="deliberate",
    openness=60,
    conscientiousness=80,
    extraversion=40,
    agreeableness=70,
    emotional_stability=75,
    how_to_approach=(Point(text="Ask about the oven.", evidence=("p1",)),),
    confidence=0.6,
)
ANSWERS = {
    "light": ModelOutputs(light=LIGHT),
    "deep": ModelOutputs(core=DEEP, outreach=OUTREACH, personality=PERSONALITY),
    "xray": ModelOutputs(
        psychographic=PSYCHOGRAPHIC, commercial=COMMERCIAL, outreach=OUTREACH, personality=PERSONALITY
    ),
}
LEAD_KEY = LeadKey(
    account_id=AccountId(UUID(int=1)),
    business_profile_id=BusinessProfileId(UUID(int=2)),
    username="ana.bakes",
)


def analysis(key=LEAD_KEY, analysis_type="light", *, of=None, at=NOON, overall=80, **fields):
    """A complete analysis of a profile as scraped at ``at``."""
    of = of or profile(username=key.username)
    answers = ANSWERS[analysis_type]
    judgement = changed(answers.light or answers.core or answers.commercial, overall=overall)
    facts, fit = facts_of(of, at), fit_of(of, BUSINESS.ideal_customer)
    first = of.posts[0]
    usual = {
        "id": RunId(uuid.uuid4()),
        "key": key,
        "analysis_type": analysis_type,
        "profile": changed(of, posts=()),
        "facts": facts,
        "fit": fit,
        "score": score_of(
            analysis_type,
            facts,
            fit,
            judgement=judgement,
            psychographic=answers.psychographic,
            post_ids={f"p{number + 1}": one.id for number, one in enumerate(of.posts)},
        ),
        "niche": judgement.niche,
        "answers": answers,
        "evidence": (
            EvidencePost(id=first.id, label="p1", url="", caption=first.caption, posted_at=first.posted_at),
        ),
        "removals": (Removal(field="summary", kind="link", text="bit.example/x"),),
        "models": ("openai/gpt-5-mini",),
        "scraped_at": at,
        "is_cached": False,
        "is_simulated": True,
        "user_id": None,
    }
    return Analysis(**{**usual, **fields})


def prompts(analysis_type, business, of, facts, cost_owner):
    fit = fit_of(of, business.ideal_customer)
    return prompts_for(
        analysis_type, business, facts, fit, excerpt_of(analysis_type, of, facts, fit), cost_owner
    )


def changed(thing, **fields):
    return msgspec.structs.replace(thing, **fields)
