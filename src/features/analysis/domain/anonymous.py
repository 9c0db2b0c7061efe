"""Result of an analysis without an account, and the account that owns such runs."""

from typing import Literal
from uuid import UUID

import msgspec

from features.analysis.domain.profile.facts import Facts
from features.analysis.domain.profile.profile import Profile
from features.analysis.domain.prompting.model_outputs import Judgement, Reason
from features.analysis.domain.scoring.scoring import Score
from shared.ids import AccountId, Tier

# The migrations insert this account.
VISITORS_ACCOUNT = AccountId(UUID("00000000-0000-4000-8000-000000000000"))


class AnonymousReason(msgspec.Struct, frozen=True, kw_only=True):
    effect: Literal["for", "against"]
    text: str


class AnonymousFacts(msgspec.Struct, frozen=True, kw_only=True):
    followers: int
    following: int
    posts_count: int
    size: str
    engagement_rate: float | None  # percent, of the usual post
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


def visitor_result(
    profile: Profile, facts: Facts, score: Score, judgement: Judgement, *, is_simulated: bool
) -> AnonymousResult:
    return AnonymousResult(
        username=profile.username,
        full_name=profile.full_name,
        score=score.total,
        tier=score.tier,
        niche=judgement.niche,
        summary=judgement.summary,
        reasons=tuple(_reason(reason) for reason in judgement.reasons),
        facts=AnonymousFacts(
            followers=facts.followers,
            following=facts.following,
            posts_count=facts.posts_count,
            size=facts.size,
            engagement_rate=facts.engagement.rate_median,
            is_verified=facts.authority.is_verified,
        ),
        is_simulated=is_simulated,
    )


def _reason(reason: Reason) -> AnonymousReason:
    return AnonymousReason(effect=reason.effect, text=reason.text)
