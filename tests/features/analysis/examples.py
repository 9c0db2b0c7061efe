"""A profile, what a model says of it, and a business, to be changed by each test."""

from datetime import timedelta
from uuid import UUID

import msgspec

from features.analysis.domain.answers import (
    CommercialAnswer,
    DeepCoreAnswer,
    LightAnswer,
    Message,
    OutreachAnswer,
    Point,
    PsychographicAnswer,
    Reason,
)
from features.analysis.domain.ideal_customer import Business, IdealCustomer
from features.analysis.domain.profile import Post, Profile, Scrape
from shared.ids import AccountId
from shared.questions import Spender
from tests.support import NOON

SPENDER = Spender(account_id=AccountId(UUID(int=1)), run_id=UUID(int=2))
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
LIGHT = LightAnswer(**JUDGEMENT)
DEEP = DeepCoreAnswer(
    **JUDGEMENT,
    audience="Home bakers.",
    content_themes=("bread",),
    strengths=(),
    risks=(),
    buying_signals=(),
    partnership_ideas=(),
)
COMMERCIAL = CommercialAnswer(
    **JUDGEMENT,
    purchase_readiness="medium",
    budget_level="low",
    sponsored_content="none",
    brand_partnerships=(),
    buying_signals=(),
    objections=(),
    best_offer="A tasting.",
)
PSYCHOGRAPHIC = PsychographicAnswer(
    summary="Patient.",
    core_values=(Point(text="Craft.", evidence=("p3",)),),
    motivations=(),
    interests=("bread",),
    frustrations=(),
    persuasion_angles=(),
    receptiveness=50,
    confidence=0.5,
)
OUTREACH = OutreachAnswer(
    language="en",
    talking_points=(Point(text="The oven.", evidence=("p1",)),),
    avoid=("Prices.",),
    messages=(Message(channel="email", subject="Bread", opening="Hello.", message="Coffee?"),),
)


def changed(thing, **fields):
    return msgspec.structs.replace(thing, **fields)
