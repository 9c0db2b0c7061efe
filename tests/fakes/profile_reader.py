"""Scrapes of profiles for tests."""

from datetime import timedelta

from features.analysis.domain.profile.profile import Post, Profile, Scrape
from tests.support import NOON


def profile_of(username="ann", *, posts=0, **facts):
    found = tuple(Post(id=str(number), kind="image") for number in range(posts))
    return Profile(username=username, posts=found, **{"followers_count": 1_000} | facts)


def scrape_of(username="ann", *, outcome="ok", posts_asked=50, age=timedelta(), posts=0, **facts):
    """A scrape taken ``age`` before noon."""
    has_profile = outcome in {"ok", "private"}
    facts |= {"is_private": True} if outcome == "private" else {}
    return Scrape(
        outcome=outcome,
        profile=profile_of(username, posts=posts, **facts) if has_profile else None,
        posts_asked=posts_asked,
        scraped_at=NOON - age,
        provider="apify",
        is_simulated=True,
    )
