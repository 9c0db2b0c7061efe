"""Validation of scraped numbers and times, which may be hidden, absurd or in the future."""

from datetime import UTC, datetime, timedelta

from features.analysis.domain.profile.profile import Post

COUNT_MAX = 1_000_000_000_000  # about a hundred times the world population: a larger number is an error
CLOCK_SKEW_MAX = timedelta(days=1)


def known(count: int | None) -> int | None:
    """Returns None for a hidden count, which scrapers report as None or -1."""
    return None if count is None or count < 0 else min(count, COUNT_MAX)


def posted_at(post: Post, at: datetime) -> datetime | None:
    """Never after ``at``. Returns None when the time is unknown or further ahead than clock skew explains."""
    moment = post.posted_at
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(moment, at) if moment - at <= CLOCK_SKEW_MAX else None
