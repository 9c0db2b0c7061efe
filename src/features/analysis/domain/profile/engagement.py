"""Engagement rates of a profile's audience."""

from datetime import datetime, timedelta
from statistics import fmean, median
from typing import Literal

import msgspec

from features.analysis.domain.profile.counts import COUNT_MAX, known, posted_at
from features.analysis.domain.profile.profile import Post, Profile

Size = Literal["nano", "micro", "mid", "macro", "mega", "enterprise"]

# Upper bound of followers for each audience size (U-11).
SIZES: tuple[tuple[int, Size], ...] = (
    (10_000, "nano"),
    (50_000, "micro"),
    (250_000, "mid"),
    (1_000_000, "macro"),
    (3_000_000, "mega"),
    (COUNT_MAX + 1, "enterprise"),
)
# Percent of followers who like or comment on a usual post. Larger audiences react less; the values are
# rounded from industry reports.
USUAL_RATE: dict[Size, float] = {
    "nano": 4.0,
    "micro": 2.4,
    "mid": 1.8,
    "macro": 1.4,
    "mega": 1.2,
    "enterprise": 1.0,
}
RATE_MAX = 1_000.0  # percent; a viral post can exceed its followers, so larger rates are capped
SETTLED_AFTER = timedelta(days=1)  # most reactions come on the first day; a younger post has a low rate


class Engagement(msgspec.Struct, frozen=True, kw_only=True):
    """Rates in percent with two decimals. None when the rate is unknown."""

    posts_measured: int
    rate_mean: float | None  # mean of (likes + comments) / followers
    rate_median: float | None  # median of the same: one viral post does not move it
    comments_share: float | None  # comments / (likes + comments), over all measured posts
    video_view_rate: float | None  # median of views / followers


def size_of(followers: int) -> Size:
    return next(size for below, size in SIZES if followers < below)


def measured_posts(profile: Profile, at: datetime) -> tuple[Post, ...]:
    """Posts with visible likes that are at least one day old."""
    return tuple(
        post for post in profile.posts if known(post.likes_count) is not None and _is_settled(post, at)
    )


def engagement_of(profile: Profile, at: datetime) -> Engagement:
    followers = known(profile.followers_count) or 0
    posts = measured_posts(profile, at)
    likes = [known(post.likes_count) or 0 for post in posts]
    comments = [known(post.comments_count) or 0 for post in posts]  # disabled comments count as 0
    rates = [_rate(sum(pair), followers) for pair in zip(likes, comments, strict=True)] if followers else []
    views = [known(post.video_views_count) for post in profile.posts if _is_settled(post, at)]
    view_rates = [_rate(count, followers) for count in views if count is not None] if followers else []
    reactions = sum(likes) + sum(comments)
    return Engagement(
        posts_measured=len(posts),
        rate_mean=round(fmean(rates), 2) if rates else None,
        rate_median=round(median(rates), 2) if rates else None,
        comments_share=round(100 * sum(comments) / reactions, 2) if reactions else None,
        video_view_rate=round(median(view_rates), 2) if view_rates else None,
    )


def _rate(count: int, followers: int) -> float:
    return min(RATE_MAX, 100 * count / followers)


def _is_settled(post: Post, at: datetime) -> bool:
    """A post of unknown age counts as old."""
    moment = posted_at(post, at)
    return moment is None or at - moment >= SETTLED_AFTER
