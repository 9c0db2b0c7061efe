"""Signals of a bought audience. None is a proof; each states the number it is based on."""

from collections.abc import Iterator
from datetime import datetime
from statistics import fmean, pstdev
from typing import Literal

import msgspec

from features.analysis.domain.profile.counts import COUNT_MAX, known
from features.analysis.domain.profile.engagement import USUAL_RATE, Engagement, measured_posts, size_of
from features.analysis.domain.profile.profile import Post, Profile

SignalName = Literal[
    "engagement_far_below_usual",
    "engagement_far_above_usual",
    "follows_very_many",
    "followers_without_posts",
    "likes_very_even",
    "likes_without_comments",
    "more_likes_than_views",
]

# Suspicion that each signal adds, of 100. The weight is highest where buying is the only explanation.
SUSPICION: dict[SignalName, int] = {
    "engagement_far_below_usual": 40,
    "engagement_far_above_usual": 20,
    "follows_very_many": 15,
    "followers_without_posts": 30,
    "likes_very_even": 25,
    "likes_without_comments": 30,
    "more_likes_than_views": 30,
}
SUSPICION_MAX = 100

POSTS_MIN = 3  # one or two posts may be odd by chance
FAR_BELOW = 0.2  # of the usual rate: bought followers do not react to posts
FAR_ABOVE = 10  # times the usual rate: bought likes, or an engagement group
FOLLOWING_MANY = 5_000  # the platform's limit is 7,500; accounts near it follow to be followed back
FOLLOWERS_PER_FOLLOWING_LOW = 2
FOLLOWERS_MANY = 10_000
POSTS_FEW = 3
EVEN_POSTS_MIN = 6
EVEN_LIKES_MIN = 50  # below this, counts are even by chance
EVENNESS_MAX = 0.05  # deviation / mean; real likes vary by a third and more
COMMENTLESS_LIKES_MIN = 500
COMMENTS_SHARE_LOW = 0.2  # percent; the usual is at most one comment per hundred likes


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """``found`` is beyond ``limit``."""

    name: SignalName
    found: float
    limit: float


def suspicion_of(signals: tuple[Signal, ...]) -> int:
    """From 0 (no signal) to 100."""
    return min(SUSPICION_MAX, sum(SUSPICION[signal.name] for signal in signals))


def signals_of(profile: Profile, engagement: Engagement, at: datetime) -> tuple[Signal, ...]:
    posts = measured_posts(profile, at)
    return (
        *_engagement_signals(profile, engagement),
        *_audience_signals(profile),
        *_like_signals(posts),
        *_view_signals(profile),
    )


def _engagement_signals(profile: Profile, engagement: Engagement) -> Iterator[Signal]:
    rate = engagement.rate_median
    if rate is None or engagement.posts_measured < POSTS_MIN:
        return
    usual = USUAL_RATE[size_of(known(profile.followers_count) or 0)]
    low, high = round(usual * FAR_BELOW, 2), round(usual * FAR_ABOVE, 2)
    if rate < low:
        yield Signal(name="engagement_far_below_usual", found=rate, limit=low)
    if rate > high:
        yield Signal(name="engagement_far_above_usual", found=rate, limit=high)


def _audience_signals(profile: Profile) -> Iterator[Signal]:
    followers, following = known(profile.followers_count) or 0, known(profile.following_count) or 0
    if following >= FOLLOWING_MANY and followers < following * FOLLOWERS_PER_FOLLOWING_LOW:
        yield Signal(name="follows_very_many", found=following, limit=FOLLOWING_MANY)
    posts_count = max(known(profile.posts_count) or 0, len(profile.posts))
    if followers >= FOLLOWERS_MANY and posts_count < POSTS_FEW:
        yield Signal(name="followers_without_posts", found=posts_count, limit=POSTS_FEW)


def _like_signals(posts: tuple[Post, ...]) -> Iterator[Signal]:
    likes = [known(post.likes_count) or 0 for post in posts]
    if len(likes) >= EVEN_POSTS_MIN and fmean(likes) >= EVEN_LIKES_MIN:
        evenness = round(pstdev(likes) / fmean(likes), 3)
        if evenness < EVENNESS_MAX:
            yield Signal(name="likes_very_even", found=evenness, limit=EVENNESS_MAX)
    # Posts with unknown comments are left out, because their owner may have disabled comments.
    open_posts = [post for post in posts if known(post.comments_count) is not None]
    likes_sum = sum(known(post.likes_count) or 0 for post in open_posts)
    comments_sum = sum(known(post.comments_count) or 0 for post in open_posts)
    if len(open_posts) >= POSTS_MIN and likes_sum >= COMMENTLESS_LIKES_MIN:
        share = round(100 * comments_sum / (likes_sum + comments_sum), 3)
        if share < COMMENTS_SHARE_LOW:
            yield Signal(name="likes_without_comments", found=share, limit=COMMENTS_SHARE_LOW)


def _view_signals(profile: Profile) -> Iterator[Signal]:
    """A like implies a view, so more likes than views is odd. Zero views means that the count is missing."""
    odd = sum(
        (known(post.likes_count) or 0) > (known(post.video_views_count) or COUNT_MAX)
        for post in profile.posts
    )
    if odd >= POSTS_MIN:
        yield Signal(name="more_likes_than_views", found=odd, limit=POSTS_MIN)
