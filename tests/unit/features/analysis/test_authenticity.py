"""Signals of a bought audience: each appears just beyond its limit and states its numbers."""

import pytest

from features.analysis.domain.profile.authenticity import SUSPICION, Signal, suspicion_of
from features.analysis.domain.profile.facts import facts_of
from tests.support import NOON
from tests.unit.features.analysis.examples import post, profile


def signals(**fields):
    return {signal.name: signal for signal in facts_of(profile(**fields), NOON).signals}


def posts(likes, **fields):
    return tuple(post(number, likes_count=count, **fields) for number, count in enumerate(likes))


def test_usual_profile_has_no_suspicion():
    assert signals() == {}
    assert facts_of(profile(), NOON).suspicion == 0


@pytest.mark.parametrize(
    ("likes", "names"),
    [
        ([47, 47, 47], {"engagement_far_below_usual"}),
        ([48, 48, 48], set()),
        ([2_400, 2_400, 2_400], set()),
        ([2_401, 2_401, 2_401], {"engagement_far_above_usual"}),
        ([1, 1], set()),  # two posts are too few
    ],
)
def test_engagement_far_from_the_usual_rate_of_the_size_is_a_signal(likes, names):
    found = signals(followers_count=10_000, posts=posts(likes, comments_count=None))

    assert found.keys() == names


def test_signal_states_the_value_and_the_limit():
    found = signals(followers_count=10_000, posts=posts([10, 10, 10], comments_count=None))

    assert found["engagement_far_below_usual"] == Signal(
        name="engagement_far_below_usual", found=0.1, limit=0.48
    )


@pytest.mark.parametrize(
    ("followers", "following", "is_odd"),
    [(9_999, 5_000, True), (10_000, 5_000, False), (9_000, 4_999, False)],
)
def test_following_very_many_accounts_is_a_signal(followers, following, is_odd):
    found = signals(followers_count=followers, following_count=following)

    assert ("follows_very_many" in found) is is_odd


@pytest.mark.parametrize(
    ("followers", "posts_count", "is_odd"), [(10_000, 2, True), (10_000, 3, False), (9_999, 0, False)]
)
def test_many_followers_without_posts_are_a_signal(followers, posts_count, is_odd):
    found = signals(followers_count=followers, posts_count=posts_count, posts=())

    assert ("followers_without_posts" in found) is is_odd


@pytest.mark.parametrize(
    ("likes", "is_odd"),
    [
        ([300, 301, 302, 303, 304, 305], True),
        ([300, 301, 302, 303, 304], False),  # too few posts
        ([300, 400, 250, 310, 500, 200], False),
        ([5, 5, 5, 5, 5, 5], False),  # small counts are even by chance
    ],
)
def test_very_even_likes_are_a_signal(likes, is_odd):
    assert ("likes_very_even" in signals(posts=posts(likes))) is is_odd


@pytest.mark.parametrize(
    ("likes", "comments", "is_odd"),
    [(400, 0, True), (998, 2, False), (997, 1, True), (400, None, False), (100, 0, False)],
)
def test_likes_without_comments_are_a_signal(likes, comments, is_odd):
    found = signals(posts=posts([likes] * 3, comments_count=comments))

    assert ("likes_without_comments" in found) is is_odd


def test_two_posts_without_comments_are_no_signal():
    assert "likes_without_comments" not in signals(posts=posts([5_000, 5_000], comments_count=0))


@pytest.mark.parametrize(
    ("views", "is_odd"),
    [([90, 90, 90], True), ([90, 90, 110], False), ([0, 0, 0], False), ([None] * 3, False)],
)
def test_more_likes_than_views_are_a_signal(views, is_odd):
    videos = tuple(
        post(number, kind="video", likes_count=100, video_views_count=count)
        for number, count in enumerate(views)
    )

    assert ("more_likes_than_views" in signals(posts=videos)) is is_odd


def test_suspicion_is_at_most_a_hundred():
    every = tuple(Signal(name=name, found=1, limit=0) for name in SUSPICION)

    assert suspicion_of(every[:1]) == SUSPICION[every[0].name]
    assert suspicion_of(every) == 100
