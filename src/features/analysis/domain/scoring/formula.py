"""Computed part of a score. A share is 0 to 1; an unknown value counts as one half."""

import math
from typing import Literal

import msgspec

from features.analysis.domain.profile.engagement import USUAL_RATE
from features.analysis.domain.profile.facts import Facts
from features.analysis.domain.scoring.icp_match import IcpMatch

FormulaName = Literal["engagement", "niche_fit", "activity", "authenticity", "authority"]

UNKNOWN = 0.5  # neither for nor against
EXCELLENT = 2.0  # times the usual engagement rate: a higher rate adds nothing
# Days since the last post and their share: a profile without posts for months hardly reads messages.
FRESHNESS = ((7, 1.0), (30, 0.7), (90, 0.3))
POSTS_PER_WEEK_ENOUGH = 3.0
FRESHNESS_WEIGHT, RHYTHM_WEIGHT = 0.6, 0.4
# The ratio is logarithmic: a hundred followers per followed account already gives the full share.
RATIO_WEIGHT, VERIFIED_WEIGHT, BUSINESS_WEIGHT = 0.7, 0.2, 0.1


class Share(msgspec.Struct, frozen=True, kw_only=True):
    name: FormulaName
    share: float
    input: str


def shares_of(facts: Facts, fit: IcpMatch) -> tuple[Share, ...]:
    return (_engagement(facts), _niche_fit(fit), _activity(facts), _authenticity(facts), _authority(facts))


def _engagement(facts: Facts) -> Share:
    """Median rate / twice the usual rate of the size."""
    rate, usual = facts.engagement.rate_median, USUAL_RATE[facts.size]
    if rate is None:
        return Share(name="engagement", share=UNKNOWN, input="engagement rate unknown")
    return Share(
        name="engagement",
        share=min(1.0, rate / (EXCELLENT * usual)),
        input=f"median engagement rate {rate:.2f} %; usual for {facts.size}: {usual:.2f} %",
    )


def _niche_fit(fit: IcpMatch) -> Share:
    """From the terms found in the profile."""
    if fit.share is None:
        return Share(name="niche_fit", share=UNKNOWN, input="the business names nothing to look for")
    found = ", ".join(match.term for match in fit.matches) or "nothing"
    excluded = "".join(f"; excluded: {match.term}" for match in fit.exclusions)
    return Share(name="niche_fit", share=fit.share, input=f"found: {found}{excluded}")


def _activity(facts: Facts) -> Share:
    """0.6 x freshness of the last post + 0.4 x posts a week / 3."""
    days, rate = facts.rhythm.days_since_last_post, facts.rhythm.posts_per_week
    if days is None:
        is_empty = facts.posts_count == 0 and facts.posts_sampled == 0
        said = "no posts" if is_empty else "dates of posts unknown"
        return Share(name="activity", share=0.0 if is_empty else UNKNOWN, input=said)
    fresh = next((worth for days_max, worth in FRESHNESS if days <= days_max), 0.0)
    rhythm = UNKNOWN if rate is None else min(1.0, rate / POSTS_PER_WEEK_ENOUGH)
    return Share(
        name="activity",
        share=FRESHNESS_WEIGHT * fresh + RHYTHM_WEIGHT * rhythm,
        input=f"last post {days} days ago; {'unknown' if rate is None else rate} posts a week",
    )


def _authenticity(facts: Facts) -> Share:
    """1 - suspicion."""
    names = ", ".join(signal.name for signal in facts.signals) or "none"
    return Share(
        name="authenticity",
        share=1 - facts.suspicion / 100,
        input=f"suspicion {facts.suspicion} of 100; signals: {names}",
    )


def _authority(facts: Facts) -> Share:
    """0.7 x log100(1 + followers / following) + 0.2 if verified + 0.1 for a business or a category."""
    authority = facts.authority
    is_business = authority.is_business or authority.has_category
    ratio = min(1.0, math.log(1 + authority.followers_per_following, 100))
    return Share(
        name="authority",
        share=RATIO_WEIGHT * ratio + VERIFIED_WEIGHT * authority.is_verified + BUSINESS_WEIGHT * is_business,
        input=(
            f"{authority.followers_per_following:g} followers for each followed;"
            f" {'verified' if authority.is_verified else 'not verified'};"
            f" {'business' if is_business else 'personal'} account"
        ),
    )
