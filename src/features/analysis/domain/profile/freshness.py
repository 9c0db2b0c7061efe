"""Freshness of a cached scrape, and its invalidation by a newer one."""

import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal, Protocol

from features.analysis.domain.profile.profile import POSTS_NEEDED, Profile, Scrape
from shared.ids import AnalysisType

Verdict = Literal["hit", "expired", "too_shallow", "ahead_of_clock"]
Change = Literal["outcome", "privacy", "verification", "followers", "biography", "ahead_of_clock"]

# Numbers of posts that a scrape requests, ascending. Its depth is the greatest of these that it reached.
DEPTHS = tuple(sorted(set(POSTS_NEEDED.values())))

TTL: dict[AnalysisType, timedelta] = {
    "light": timedelta(hours=24),
    "deep": timedelta(hours=12),
    "xray": timedelta(hours=6),
}
# Refused analyses are free for the customer, but each fetch costs us, so refusals are cached. An owner who
# has just published or created a profile retries soon. Age and country restrictions hardly ever change.
TTL_REFUSED: Mapping[str, timedelta] = {
    "private": timedelta(hours=1),
    "not_found": timedelta(hours=1),
    "restricted": timedelta(hours=6),
}
CLOCK_SKEW_MAX = timedelta(minutes=5)

FOLLOWERS_CHANGE_PERCENT = 10
BIOGRAPHY_CHANGE_PERCENT = 30
BIOGRAPHY_CHARACTERS_MAX = 2_000  # Instagram allows 150; a longer text is compared up to this length


class Fetched(Protocol):
    """Fields that decide whether a fetched result is still valid."""

    @property
    def outcome(self) -> str: ...

    @property
    def posts_asked(self) -> int: ...

    @property
    def scraped_at(self) -> datetime: ...


def depth_of(posts_asked: int) -> int | None:
    """Returns None when the scrape requested fewer posts than any analysis needs."""
    return max((depth for depth in DEPTHS if depth <= posts_asked), default=None)


def age_s(scrape: Scrape, now: datetime) -> float:
    """Never negative, because clocks differ slightly."""
    return max(0.0, (now - scrape.scraped_at).total_seconds())


def judge(scrape: Fetched, analysis_type: AnalysisType, now: datetime) -> Verdict:
    """Compares the posts requested, not received: a profile with eight posts in all never returns fifty."""
    age = now - scrape.scraped_at
    if age < -CLOCK_SKEW_MAX:
        return "ahead_of_clock"
    if scrape.posts_asked < POSTS_NEEDED[analysis_type]:
        return "too_shallow"
    ttl = TTL[analysis_type]
    return "hit" if age <= min(ttl, TTL_REFUSED.get(scrape.outcome, ttl)) else "expired"


def changes(older: Scrape, newer: Scrape) -> tuple[Change, ...]:
    """Reasons to invalidate the older scrape before it expires. Empty when it stays valid."""
    found: dict[Change, bool] = {
        # Otherwise it would count as the newest until that time.
        "ahead_of_clock": older.scraped_at - newer.scraped_at > CLOCK_SKEW_MAX,
        "outcome": older.outcome != newer.outcome,
    }
    if older.profile is not None and newer.profile is not None:
        found |= _profile_changes(older.profile, newer.profile)
    return tuple(change for change, has_happened in found.items() if has_happened)


def _profile_changes(before: Profile, after: Profile) -> dict[Change, bool]:
    return {
        "privacy": before.is_private != after.is_private,
        "verification": before.is_verified != after.is_verified,
        "followers": is_follower_change(before.followers_count, after.followers_count),
        "biography": is_biography_change(before.biography, after.biography),
    }


def is_follower_change(before: int, after: int) -> bool:
    """Uses integers, so that exactly ten percent is not more than ten percent."""
    return abs(after - before) * 100 > before * FOLLOWERS_CHANGE_PERCENT


def is_biography_change(before: str, after: str) -> bool:
    """Compares the edit distance as a share of the longer text."""
    before, after = (
        unicodedata.normalize("NFC", text[:BIOGRAPHY_CHARACTERS_MAX]) for text in (before, after)
    )
    if before == after:
        return False
    longest = max(len(before), len(after))
    return edit_distance(before, after) * 100 > longest * BIOGRAPHY_CHANGE_PERCENT


def edit_distance(before: str, after: str) -> int:
    """Levenshtein distance, computed one bit-parallel column at a time: a bit per character of ``before``
    holds whether the distance rises or falls there (Hyyrö 2003). Two thousand characters take two thousand
    steps instead of four million.
    """
    if not before:
        return len(after)
    places: dict[str, int] = {}
    for place, character in enumerate(before):
        places[character] = places.get(character, 0) | 1 << place
    all_bits, last_bit = (1 << len(before)) - 1, 1 << (len(before) - 1)
    up, down, distance = all_bits, 0, len(before)
    for character in after:
        same = places.get(character, 0)
        diagonal = ((same & up) + up ^ up) | same | down
        row_up, row_down = down | ~(diagonal | up) & all_bits, up & diagonal
        distance += bool(row_up & last_bit) - bool(row_down & last_bit)
        row_up, row_down = row_up << 1 | 1, row_down << 1
        up, down = (row_down | ~(diagonal | row_up)) & all_bits, row_up & diagonal & all_bits
    return distance
