"""Computed facts: deterministic, and robust against any scraped value."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.analysis.domain.profile.counts import COUNT_MAX
from features.analysis.domain.profile.engagement import RATE_MAX, USUAL_RATE
from features.analysis.domain.profile.facts import COUNTS_MAX, ContentMix, Count, Facts, facts_of
from features.analysis.domain.profile.profile import Post, Profile
from tests.support import NOON
from tests.unit.features.analysis.examples import days_before, post, profile

COUNTS = st.none() | st.integers(-5, 100) | st.integers(-(10**30), 10**30)
MOMENTS = st.none() | st.datetimes() | st.datetimes(timezones=st.just(UTC))
POSTS = st.builds(
    Post,
    id=st.text(max_size=3),
    kind=st.sampled_from(["image", "video", "carousel"]),
    caption=st.text(max_size=20),
    hashtags=st.lists(st.text(max_size=5), max_size=3).map(tuple),
    mentions=st.lists(st.text(max_size=5), max_size=3).map(tuple),
    likes_count=COUNTS,
    comments_count=COUNTS,
    video_views_count=COUNTS,
    posted_at=MOMENTS,
)
PROFILES = st.builds(
    Profile,
    username=st.just("person"),
    biography=st.text(max_size=20),
    category=st.text(max_size=3),
    followers_count=st.integers(-(10**30), 10**30) | st.integers(0, 100_000),
    following_count=st.integers(-(10**30), 10**30) | st.integers(0, 9_000),
    posts_count=st.integers(-(10**30), 10**30),
    posts=st.lists(POSTS, max_size=5).map(tuple),
)


def engagement(**fields):
    return facts_of(profile(**fields), NOON).engagement


@settings(deadline=None, max_examples=40)
@given(PROFILES)
def test_any_profile_gives_facts_within_bounds(person):
    facts = facts_of(person, NOON)

    rates = [facts.engagement.rate_mean, facts.engagement.rate_median, facts.engagement.video_view_rate]
    assert all(0 <= rate <= RATE_MAX for rate in rates if rate is not None)
    assert 0 <= facts.suspicion <= 100
    assert 0 <= facts.followers <= COUNT_MAX
    assert facts.rhythm.days_since_last_post is None or facts.rhythm.days_since_last_post >= 0
    assert msgspec.json.decode(msgspec.json.encode(facts), type=Facts) == facts


@pytest.mark.parametrize(
    ("followers", "size"),
    [
        (0, "nano"),
        (9_999, "nano"),
        (10_000, "micro"),
        (50_000, "mid"),
        (249_999, "mid"),
        (250_000, "macro"),
        (1_000_000, "mega"),
        (2_999_999, "mega"),
        (3_000_000, "enterprise"),
        (10**40, "enterprise"),
    ],
)
def test_audience_size_depends_on_followers(followers, size):
    assert facts_of(profile(followers_count=followers), NOON).size == size
    assert size in USUAL_RATE


def test_engagement_rate_is_reactions_per_hundred_followers():
    posts = tuple(
        post(number, likes_count=likes, comments_count=20) for number, likes in enumerate((80, 180, 940))
    )

    measured = engagement(followers_count=10_000, posts=posts)
    assert (measured.rate_mean, measured.rate_median, measured.posts_measured) == (4.2, 2.0, 3)
    assert measured.comments_share == round(100 * 60 / 1260, 2)


@pytest.mark.parametrize("hidden", [None, -1])
def test_posts_with_hidden_likes_are_not_counted(hidden):
    posts = (post(0, likes_count=hidden), post(1, likes_count=100, comments_count=None))

    measured = engagement(followers_count=10_000, posts=posts)
    assert (measured.rate_mean, measured.posts_measured, measured.comments_share) == (1.0, 1, 0.0)


@pytest.mark.parametrize(
    "fields",
    [{"followers_count": 0}, {"posts": ()}, {"posts": (post(0, likes_count=None),)}],
    ids=["no followers", "no posts", "hidden likes"],
)
def test_rate_without_data_is_unknown(fields):
    measured = engagement(**fields)

    assert (measured.rate_mean, measured.rate_median, measured.video_view_rate) == (None, None, None)


def test_post_younger_than_a_day_is_not_measured():
    posts = (
        post(0, posted_at=NOON - timedelta(hours=23), likes_count=1, video_views_count=1),
        post(1, posted_at=NOON - timedelta(hours=24), likes_count=90, video_views_count=600),
    )

    measured = engagement(followers_count=1_000, posts=posts)
    assert (measured.rate_mean, measured.video_view_rate) == (10.0, 60.0)


def test_view_rate_is_a_share_of_followers():
    posts = tuple(
        post(number, kind="video", video_views_count=views)
        for number, views in enumerate((1_000, 3_000, 90_000))
    )

    assert engagement(followers_count=10_000, posts=posts).video_view_rate == 30.0


def test_posts_per_week_are_counted_over_the_sampled_days():
    posts = tuple(post(number, posted_at=days_before(5 + 2 * number)) for number in range(8))

    rhythm = facts_of(profile(posts=posts), NOON).rhythm
    assert (rhythm.posts_per_week, rhythm.days_since_last_post, rhythm.regularity) == (3.5, 5, 1.0)


def test_bursts_are_less_regular_than_even_gaps():
    posts = tuple(post(days, posted_at=days_before(days)) for days in (1, 2, 3, 40, 41))

    regularity = facts_of(profile(posts=posts), NOON).rhythm.regularity
    assert regularity is not None
    assert 0 < regularity < 0.5


def test_old_pinned_post_does_not_lower_posts_per_week():
    posts = (
        *(post(days, posted_at=days_before(days)) for days in (1, 8, 15)),
        post(9, posted_at=days_before(900)),
    )

    assert facts_of(profile(posts=posts), NOON).rhythm.posts_per_week == 1.0


@pytest.mark.parametrize(
    ("moments", "days"),
    [
        ([None, None], None),
        ([days_before(3)], 3),
        ([NOON + timedelta(hours=3)], 0),  # within clock skew
        ([datetime(2099, 1, 1, tzinfo=UTC)], None),  # beyond clock skew
        ([days_before(4).replace(tzinfo=None)], 4),
        ([days_before(3), days_before(3)], 3),
    ],
)
def test_too_few_dates_give_no_rhythm(moments, days):
    posts = tuple(post(number, posted_at=moment) for number, moment in enumerate(moments))

    rhythm = facts_of(profile(posts=posts), NOON).rhythm
    assert (rhythm.posts_per_week, rhythm.days_since_last_post, rhythm.regularity) == (None, days, None)


def test_burst_within_a_day_gives_no_weekly_rate():
    posts = tuple(post(hours, posted_at=NOON - timedelta(hours=hours)) for hours in (1, 5, 24))

    assert facts_of(profile(posts=posts), NOON).rhythm.posts_per_week is None


def test_simultaneous_posts_have_no_regularity():
    posts = tuple(post(number, posted_at=days_before(3)) for number in range(6))

    assert facts_of(profile(posts=posts), NOON).rhythm.regularity is None


def test_content_is_counted_by_kind():
    kinds = ("image", "video", "video", "carousel")

    facts = facts_of(profile(posts=tuple(post(i, kind=kind) for i, kind in enumerate(kinds))), NOON)
    assert facts.mix == ContentMix(images=1, videos=2, carousels=1)


def test_hashtags_count_once_per_post_normalized_and_sorted():
    posts = (
        post(0, hashtags=("Bread", "#bread", "oven"), mentions=("Mill",)),
        post(1, hashtags=("BREAD", "art", " "), mentions=("@mill",)),
    )

    facts = facts_of(profile(posts=posts), NOON)
    assert [(count.text, count.posts_count) for count in facts.hashtags] == [
        ("bread", 2),
        ("art", 1),
        ("oven", 1),
    ]
    assert facts.mentions == (Count(text="mill", posts_count=2),)


def test_only_the_most_used_hashtags_are_kept():
    posts = (post(0, hashtags=tuple(f"tag{number}" for number in range(40))),)

    assert len(facts_of(profile(posts=posts), NOON).hashtags) == COUNTS_MAX


def test_authority_is_followers_per_following():
    facts = facts_of(profile(following_count=0, is_verified=True, is_business=True, category=" "), NOON)

    assert facts.authority.followers_per_following == 12_000
    assert (facts.authority.is_verified, facts.authority.is_business) == (True, True)
    assert not facts.authority.has_category


@pytest.mark.parametrize(
    ("text", "script"), [("Добро пожаловать, chef", "cyrillic"), ("hello", "latin"), ("123 🍞", None)]
)
def test_script_is_that_of_most_letters(text, script):
    assert facts_of(profile(biography=text, posts=()), NOON).script == script
