"""Freshness of cached scrapes by age and depth, and their invalidation by newer ones."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from features.analysis.domain.profile.freshness import (
    BIOGRAPHY_CHARACTERS_MAX,
    DEPTHS,
    TTL,
    TTL_REFUSED,
    age_s,
    changes,
    depth_of,
    edit_distance,
    is_biography_change,
    is_follower_change,
    judge,
)
from features.analysis.domain.profile.profile import POSTS_NEEDED
from tests.fakes.profile_reader import scrape_of
from tests.support import NOON

SECOND = timedelta(seconds=1)
HOURS = {"light": 24, "deep": 12, "xray": 6}


@pytest.mark.parametrize(("analysis_type", "hours"), HOURS.items())
@pytest.mark.parametrize(("later", "verdict"), [(-SECOND, "hit"), (timedelta(), "hit"), (SECOND, "expired")])
def test_scrape_is_fresh_until_exactly_its_ttl(analysis_type, hours, later, verdict):
    scrape = scrape_of(age=timedelta(hours=hours) + later)

    assert judge(scrape, analysis_type, NOON) == verdict


def test_every_analysis_type_has_a_ttl():
    assert TTL.keys() == POSTS_NEEDED.keys()
    assert {name: ttl.total_seconds() / 3_600 for name, ttl in TTL.items()} == HOURS


@pytest.mark.parametrize(
    ("posts_asked", "verdicts"),
    [
        (11, {"light": "too_shallow", "deep": "too_shallow", "xray": "too_shallow"}),
        (12, {"light": "hit", "deep": "too_shallow", "xray": "too_shallow"}),
        (49, {"light": "hit", "deep": "too_shallow", "xray": "too_shallow"}),
        (50, {"light": "hit", "deep": "hit", "xray": "hit"}),
    ],
)
def test_light_scrape_is_too_shallow_for_a_deep_analysis(posts_asked, verdicts):
    scrape = scrape_of(posts_asked=posts_asked, posts=60)

    assert {analysis_type: judge(scrape, analysis_type, NOON) for analysis_type in TTL} == verdicts


def test_profile_with_few_posts_in_all_is_deep_enough():
    assert judge(scrape_of(posts_asked=50, posts=8), "deep", NOON) == "hit"


@pytest.mark.parametrize("outcome", ["private", "not_found", "restricted"])
@pytest.mark.parametrize("analysis_type", TTL)
def test_refusal_has_a_shorter_ttl(outcome, analysis_type):
    ttl = TTL_REFUSED[outcome]

    assert ttl <= TTL[analysis_type]
    assert judge(scrape_of(outcome=outcome, age=ttl), analysis_type, NOON) == "hit"
    assert judge(scrape_of(outcome=outcome, age=ttl + SECOND), analysis_type, NOON) == "expired"


@pytest.mark.parametrize(
    ("ahead", "verdict"),
    [
        (timedelta(minutes=5), "hit"),
        (timedelta(minutes=5) + SECOND, "ahead_of_clock"),
        (timedelta(days=400), "ahead_of_clock"),
    ],
)
def test_scrape_from_the_future_is_not_a_hit(ahead, verdict):
    assert judge(scrape_of(age=-ahead), "light", NOON) == verdict


@pytest.mark.parametrize(("age", "seconds"), [(timedelta(minutes=1), 60.0), (-timedelta(minutes=1), 0.0)])
def test_age_is_never_negative(age, seconds):
    assert age_s(scrape_of(age=age), NOON) == seconds


@pytest.mark.parametrize(
    ("posts_asked", "depth"), [(0, None), (11, None), (12, 12), (49, 12), (50, 50), (99, 50)]
)
def test_depth_is_the_greatest_one_reached(posts_asked, depth):
    assert depth_of(posts_asked) == depth


def test_depths_are_the_posts_that_analyses_need():
    assert DEPTHS == (12, 50)


@pytest.mark.parametrize(
    ("before", "after", "is_change"),
    [
        (1_000, 1_100, False),
        (1_000, 1_101, True),
        (1_000, 900, False),
        (1_000, 899, True),
        (0, 0, False),
        (0, 1, True),
        (1, 0, True),
        (7, 7, False),
    ],
)
def test_more_than_ten_percent_of_followers_is_a_change(before, after, is_change):
    assert is_follower_change(before, after) is is_change


@pytest.mark.parametrize(
    ("before", "after", "is_change"),
    [
        ("0123456789", "0123456789", False),
        ("0123456789", "0123456abc", False),
        ("0123456789", "012345abcd", True),
        ("0123456", "0123456789", False),
        ("012345", "0123456789", True),
        ("", "", False),
        ("", "new", True),
        ("gone", "", True),
        ("Ann | coach | Berlin", "Ann | Berlin | coach", True),
        ("cafe\u0301", "café", False),
        ("eeeeeeeeee", "ééééeeeeee", True),
        ("写真家 東京", "写真家 大阪", True),
    ],
)
def test_more_than_thirty_percent_of_the_biography_is_a_change(before, after, is_change):
    assert is_biography_change(before, after) is is_change


def test_very_long_biographies_are_compared_up_to_the_limit():
    start = "a" * BIOGRAPHY_CHARACTERS_MAX

    assert not is_biography_change(start + "b" * 10_000_000, start + "c" * 10_000_000)
    assert is_biography_change("ab" * 5_000_000, "cd" * 5_000_000)


def distance_by_the_table(before, after):
    row = list(range(len(after) + 1))
    for number, character in enumerate(before, 1):
        following = [number]
        for place, other in enumerate(after, 1):
            step = row[place - 1] + (character != other)
            following.append(min(following[-1] + 1, row[place] + 1, step))
        row = following
    return row[-1]


@given(some.text("abü", max_size=12), some.text("abü", max_size=12))
def test_edit_distance_is_levenshtein(before, after):
    assert edit_distance(before, after) == distance_by_the_table(before, after)


@given(some.text(max_size=80), some.text(max_size=80))
def test_edit_distance_is_levenshtein_beyond_a_machine_word(before, after):
    assert edit_distance(before, after) == distance_by_the_table(before, after)


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, ()),
        ({"followers_count": 1_100, "biography": "", "full_name": "New"}, ()),
        ({"followers_count": 1_200}, ("followers",)),
        ({"biography": "something"}, ("biography",)),
        ({"is_verified": True}, ("verification",)),
        ({"is_private": True}, ("privacy",)),
        ({"is_private": True, "followers_count": 1}, ("privacy", "followers")),
    ],
)
def test_newer_scrape_reports_its_changes(facts, found):
    assert changes(scrape_of(age=timedelta(hours=1)), scrape_of(**facts)) == found


@pytest.mark.parametrize("outcome", ["not_found", "restricted"])
def test_appeared_or_disappeared_profile_is_a_change(outcome):
    assert changes(scrape_of(outcome=outcome), scrape_of()) == ("outcome",)
    assert changes(scrape_of(), scrape_of(outcome=outcome)) == ("outcome",)
    assert changes(scrape_of(outcome=outcome), scrape_of(outcome=outcome)) == ()


def test_profile_that_became_private_is_a_change():
    assert changes(scrape_of(), scrape_of(outcome="private")) == ("outcome", "privacy")
    hidden = msgspec.structs.replace(scrape_of(outcome="private"), profile=None)
    assert changes(scrape_of(), hidden) == ("outcome",)


@pytest.mark.parametrize(
    ("ahead", "found"), [(timedelta(minutes=5), ()), (timedelta(minutes=5) + SECOND, ("ahead_of_clock",))]
)
def test_older_scrape_from_the_future_is_invalidated(ahead, found):
    assert changes(scrape_of(age=-ahead), scrape_of()) == found
