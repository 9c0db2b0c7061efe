"""Computed facts about a profile: the same numbers for the same scrape.

``at`` is the time of the scrape, not the time of the computation.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import msgspec

from features.analysis.domain.profile.authenticity import Signal, signals_of, suspicion_of
from features.analysis.domain.profile.counts import known
from features.analysis.domain.profile.engagement import Engagement, Size, engagement_of, size_of
from features.analysis.domain.profile.profile import Profile
from features.analysis.domain.profile.rhythm import Rhythm, rhythm_of
from shared.text import plain

COUNTS_MAX = 10
TAG_LENGTH_MAX = 100
SCRIPT_LETTERS_MAX = 2_000  # enough to detect a script, and fast


class Count(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    posts_count: int


class ContentMix(msgspec.Struct, frozen=True, kw_only=True):
    images: int
    videos: int
    carousels: int


class Authority(msgspec.Struct, frozen=True, kw_only=True):
    followers_per_following: float  # following 0 counts as 1, to avoid a division by zero
    is_verified: bool
    is_business: bool
    has_category: bool


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    followers: int
    following: int
    posts_count: int
    posts_sampled: int
    size: Size
    engagement: Engagement
    rhythm: Rhythm
    mix: ContentMix
    hashtags: tuple[Count, ...]  # counted once per post, the most used first
    mentions: tuple[Count, ...]
    authority: Authority
    signals: tuple[Signal, ...]
    suspicion: int  # 0..100
    script: str | None  # of most letters, by its Unicode name: latin, cyrillic, cjk...


def facts_of(profile: Profile, at: datetime) -> Facts:
    followers = known(profile.followers_count) or 0
    engagement = engagement_of(profile, at)
    signals = signals_of(profile, engagement, at)
    return Facts(
        at=at,
        followers=followers,
        following=known(profile.following_count) or 0,
        posts_count=known(profile.posts_count) or 0,
        posts_sampled=len(profile.posts),
        size=size_of(followers),
        engagement=engagement,
        rhythm=rhythm_of(profile, at),
        mix=_mix(profile),
        hashtags=_counted(post.hashtags for post in profile.posts),
        mentions=_counted(post.mentions for post in profile.posts),
        authority=_authority(profile),
        signals=signals,
        suspicion=suspicion_of(signals),
        script=_script(profile),
    )


def _mix(profile: Profile) -> ContentMix:
    kinds = Counter(post.kind for post in profile.posts)
    return ContentMix(images=kinds["image"], videos=kinds["video"], carousels=kinds["carousel"])


def _authority(profile: Profile) -> Authority:
    followers, following = known(profile.followers_count) or 0, known(profile.following_count) or 0
    return Authority(
        followers_per_following=round(followers / max(following, 1), 2),
        is_verified=profile.is_verified,
        is_business=profile.is_business,
        has_category=bool(profile.category.strip()),
    )


def _counted(lists: Iterable[tuple[str, ...]]) -> tuple[Count, ...]:
    """Ordered by count, then by text, so that the order of the posts does not matter."""
    counted: Counter[str] = Counter()
    for texts in lists:
        counted.update({_tag(text) for text in texts} - {""})
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(Count(text=text, posts_count=count) for text, count in ranked[:COUNTS_MAX])


def _tag(text: str) -> str:
    return plain(text[:TAG_LENGTH_MAX]).lstrip("#@").casefold()


def _script(profile: Profile) -> str | None:
    texts = [profile.biography, *(post.caption for post in profile.posts)]
    letters = [letter for letter in " ".join(texts)[:SCRIPT_LETTERS_MAX] if letter.isalpha()]
    names = Counter(unicodedata.name(letter, "").partition(" ")[0].lower() for letter in letters)
    return min(names, key=lambda name: (-names[name], name)) if names else None
