"""Numbers and times as strangers' pages give them: hidden, absurd, or from the future."""

from datetime import UTC, datetime, timedelta

from features.analysis.domain.profile.profile import Post

COUNT_MAX = 1_000_000_000_000  # a hundred times mankind: beyond it a number is a mistake
CLOCK_SKEW_MAX = timedelta(days=1)


def known(count: int | None) -> int | None:
    """None when it is hidden; scrapers say -1, too."""
    return None if count is None or count < 0 else min(count, COUNT_MAX)


def posted_at(post: Post, at: datetime) -> datetime | None:
    """Never after ``at``. None when nobody knows, or when it lies ahead by more than clocks differ."""
    moment = post.posted_at
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(moment, at) if moment - at <= CLOCK_SKEW_MAX else None
