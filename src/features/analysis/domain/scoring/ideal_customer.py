"""Business and ideal customer that a profile is judged for, in this slice's terms."""

from typing import Literal

import msgspec

from features.analysis.domain.profile.facts import Facts

ViolationName = Literal["followers_below_min", "followers_above_max", "engagement_rate_below_min"]

ENGAGEMENT_POSTS_MIN = 3  # a rate from fewer posts is uncertain and refuses no profile


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A bound of the ideal customer that the profile violates: ``found`` is beyond ``limit``."""

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
        """Followers first. An unknown value violates nothing."""
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
    """``prompt_prefix`` stays byte-identical as long as the business profile does not change."""

    prompt_prefix: str
    ideal_customer: IdealCustomer = IdealCustomer()


# For a visitor without a business profile.
UNDESCRIBED = Business(
    prompt_prefix="""\
The business is not described. Judge the profile as a lead for a small brand that looks for trustworthy
partners with a real audience, whatever it sells.
"""
)


def _rate_at_best(facts: Facts) -> float | None:
    """The higher of mean and median, so that a profile is refused only if both are too low."""
    measured = facts.engagement
    if measured.rate_mean is None or measured.rate_median is None:
        return None
    is_certain = measured.posts_measured >= ENGAGEMENT_POSTS_MIN
    return max(measured.rate_mean, measured.rate_median) if is_certain else None


def _violation(name: ViolationName, found: float, limit: float) -> Violation:
    return Violation(name=name, found=found, limit=limit)
