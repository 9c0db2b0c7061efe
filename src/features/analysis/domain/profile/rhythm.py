"""Frequency and regularity of posts."""

from datetime import datetime, timedelta
from itertools import pairwise
from statistics import fmean, pstdev

import msgspec

from features.analysis.domain.profile.counts import posted_at
from features.analysis.domain.profile.profile import Profile

WINDOW = timedelta(days=365)  # before the newest post; older posts are pinned or outdated
GAPS_MIN = 3  # fewer gaps do not show regularity
DAY_S = 86_400


class Rhythm(msgspec.Struct, frozen=True, kw_only=True):
    """None when too few posts have a date."""

    posts_per_week: float | None  # gaps between posts / weeks from the oldest to the newest in the window
    days_since_last_post: int | None
    regularity: float | None  # 1 / (1 + deviation of gaps / mean gap): 1.0 is perfectly regular


def rhythm_of(profile: Profile, at: datetime) -> Rhythm:
    moments = sorted(filter(None, (posted_at(post, at) for post in profile.posts)))
    if not moments:
        return Rhythm(posts_per_week=None, days_since_last_post=None, regularity=None)
    newest = moments[-1]
    recent = [moment for moment in moments if newest - moment <= WINDOW]
    gaps_days = [(later - earlier).total_seconds() / DAY_S for earlier, later in pairwise(recent)]
    span_days = sum(gaps_days)
    return Rhythm(
        # Posts within a single day do not allow a weekly rate.
        posts_per_week=round(7 * len(gaps_days) / span_days, 2) if span_days >= 1 else None,
        days_since_last_post=(at - newest).days,
        regularity=_regularity(gaps_days) if len(gaps_days) >= GAPS_MIN and span_days else None,
    )


def _regularity(gaps_days: list[float]) -> float:
    return round(1 / (1 + pstdev(gaps_days) / fmean(gaps_days)), 2)
