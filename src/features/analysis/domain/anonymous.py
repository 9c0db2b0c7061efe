"""Result of an analysis without an account, and the account that owns such runs."""

from typing import Literal
from uuid import UUID

import msgspec

from features.analysis.domain.analysis import Analysis
from shared.ids import AccountId, Tier

# The migrations insert this account.
ANONYMOUS_ACCOUNT = AccountId(UUID("00000000-0000-4000-8000-000000000000"))


class AnonymousReason(msgspec.Struct, frozen=True, kw_only=True):
    effect: Literal["for", "against"]
    text: str


class AnonymousFacts(msgspec.Struct, frozen=True, kw_only=True):
    followers: int
    following: int
    posts_count: int
    size: str
    engagement_rate: float | None  # median, in percent
    is_verified: bool


class AnonymousResult(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a light analysis that is shown without an account."""

    username: str
    full_name: str
    score: int
    tier: Tier
    niche: str
    summary: str
    reasons: tuple[AnonymousReason, ...]
    facts: AnonymousFacts
    is_simulated: bool


def anonymous_result(analysis: Analysis) -> AnonymousResult:
    profile, facts, judgement = analysis.profile, analysis.facts, analysis.answers.light
    assert judgement is not None, "an anonymous analysis is a light one"
    return AnonymousResult(
        username=profile.username,
        full_name=profile.full_name,
        score=analysis.score.total,
        tier=analysis.score.tier,
        niche=judgement.niche,
        summary=judgement.summary,
        reasons=tuple(
            AnonymousReason(effect=reason.effect, text=reason.text) for reason in judgement.reasons
        ),
        facts=AnonymousFacts(
            followers=facts.followers,
            following=facts.following,
            posts_count=facts.posts_count,
            size=facts.size,
            engagement_rate=facts.engagement.rate_median,
            is_verified=facts.authority.is_verified,
        ),
        is_simulated=analysis.is_simulated,
    )
