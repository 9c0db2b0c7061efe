"""The business on whose behalf a profile is judged, in this slice's words."""

from typing import Literal

import msgspec

from features.analysis.domain.profile.facts import Facts

ViolationName = Literal["followers_below_min", "followers_above_max", "engagement_rate_below_min"]

ENGAGEMENT_POSTS_MIN = 3  # a rate from fewer posts is no certainty, and only certainties refuse


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """By what somebody fails to be an ideal customer: ``found`` has passed ``limit``."""

    name: ViolationName
    found: float
    limit: float


class IdealCustomer(msgspec.Struct, frozen=True, kw_only=True):
    followers_min: int | None = None
    followers_max: int | None = None
    engagement_rate_min: float | None = None  # percent
    niches: tuple[str, ...] = ()
    content_themes: tuple[str, ...] = ()
    geographies: tuple[str, ...] = ()
    exclusions: tuple[str, ...] = ()

    def violations(self, facts: Facts) -> tuple[Violation, ...]:
        """Followers first. What nobody knows violates nothing."""
        found: list[Violation] = []
        if self.followers_min is not None and facts.followers < self.followers_min:
            found.append(_violation("followers_below_min", facts.followers, self.followers_min))
        if self.followers_max is not None and facts.followers > self.followers_max:
            found.append(_violation("followers_above_max", facts.followers, self.followers_max))
        rate = _rate_at_best(facts)
        if self.engagement_rate_min is not None and rate is not None and rate < self.engagement_rate_min:
            found.append(_violation("engagement_rate_below_min", rate, self.engagement_rate_min))
        return tuple(found)


class Business(msgspec.Struct, frozen=True, kw_only=True):
    """``prompt_prefix`` is the same bytes as long as the business says the same of itself."""

    prompt_prefix: str
    ideal_customer: IdealCustomer = IdealCustomer()


# For a visitor who has not said what they sell.
UNDESCRIBED = Business(
    prompt_prefix="""\
Nobody has described a business. Judge the profile as a lead for a small brand that looks for trustworthy
partners with a real audience, whatever it sells.
"""
)


def _rate_at_best(facts: Facts) -> float | None:
    """Mean or median, whichever is kinder: who is refused is refused by both."""
    measured = facts.engagement
    if measured.rate_mean is None or measured.rate_median is None:
        return None
    is_certain = measured.posts_measured >= ENGAGEMENT_POSTS_MIN
    return max(measured.rate_mean, measured.rate_median) if is_certain else None


def _violation(name: ViolationName, found: float, limit: float) -> Violation:
    return Violation(name=name, found=found, limit=limit)
