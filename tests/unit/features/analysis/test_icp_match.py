"""Ideal customer: bounds that refuse only with certainty, and terms found with their locations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.analysis.domain.eligibility import Eligibility, check_eligibility
from features.analysis.domain.profile.facts import facts_of
from features.analysis.domain.scoring.icp_match import PLACES_MAX, WEIGHTS, Location, fit_of
from features.analysis.domain.scoring.ideal_customer import IdealCustomer, Violation
from tests.support import NOON
from tests.unit.features.analysis.examples import post, profile, scrape


def places(term, **fields):
    fit = fit_of(profile(**fields), IdealCustomer(niches=(term,)))
    return [place for match in fit.matches for place in match.places]


@pytest.mark.parametrize(
    ("bounds", "violations"),
    [
        ({}, []),
        ({"followers_min": 12_000, "followers_max": 12_000}, []),
        ({"followers_min": 12_001}, [("followers_below_min", 12_000, 12_001)]),
        ({"followers_max": 11_999}, [("followers_above_max", 12_000, 11_999)]),
        ({"engagement_rate_min": 2.71}, []),
        ({"engagement_rate_min": 2.72}, [("engagement_rate_below_min", 2.71, 2.72)]),
        (
            {"followers_min": 20_000, "engagement_rate_min": 50.0},
            [("followers_below_min", 12_000, 20_000), ("engagement_rate_below_min", 2.71, 50.0)],
        ),
    ],
)
def test_violations_have_a_name_and_the_numbers(bounds, violations):
    found = IdealCustomer(**bounds).violations(facts_of(profile(), NOON))

    assert [(one.name, one.found, one.limit) for one in found] == violations


@pytest.mark.parametrize(
    "fields",
    [
        {"posts": ()},
        {"posts": tuple(post(number, likes_count=None) for number in range(9))},
        {"posts": (post(0, likes_count=0), post(1, likes_count=0))},
        {"followers_count": 0},
    ],
    ids=["no posts", "hidden likes", "two posts", "no followers"],
)
def test_uncertain_engagement_rate_violates_nothing(fields):
    facts = facts_of(profile(**fields), NOON)

    assert IdealCustomer(engagement_rate_min=50.0).violations(facts) == ()


@pytest.mark.parametrize("likes", [(10, 10, 900), (90, 90, 0)], ids=["a viral post", "a flop"])
def test_higher_of_mean_and_median_decides(likes):
    posts = tuple(post(number, likes_count=count, comments_count=0) for number, count in enumerate(likes))
    facts = facts_of(profile(followers_count=1_000, posts=posts), NOON)

    assert IdealCustomer(engagement_rate_min=9.0).violations(facts) == ()


FANCY = "\U0001d41b\U0001d42b\U0001d41e\U0001d41a\U0001d41d"  # bread
IN_HASHTAG = Location(field="hashtag", post_id="1800003")
PRIVATE = profile(is_private=True, posts=())


@pytest.mark.parametrize(
    ("scrape", "outcome"),
    [
        (scrape(), "ok"),
        (scrape(outcome="private", profile=PRIVATE), "private"),
        (scrape(outcome="not_found", profile=None), "not_found"),
        (scrape(outcome="restricted", profile=None), "restricted"),
        (scrape(profile=None), "not_found"),
        (scrape(profile=PRIVATE), "private"),
    ],
    ids=["ok", "private", "not found", "restricted", "ok without a profile", "ok but private"],
)
def test_scrape_outcome_is_checked_before_bounds(scrape, outcome):
    assert check_eligibility(scrape, IdealCustomer()) == Eligibility(outcome=outcome)
    if outcome != "ok":
        assert check_eligibility(scrape, IdealCustomer(followers_min=10**9)) == Eligibility(outcome=outcome)


def test_eligibility_lists_violated_bounds():
    violation = Violation(name="followers_above_max", found=12_000, limit=5)

    assert check_eligibility(scrape(), IdealCustomer(followers_max=5)) == Eligibility(
        outcome="icp_violation", violations=(violation,)
    )


@pytest.mark.parametrize(
    ("term", "fields", "place"),
    [
        ("Bakeries", {"category": "bakeries & cafés"}, Location(field="category")),
        ("ana novak", {}, Location(field="full_name")),
        ("SMALL OVEN", {}, Location(field="biography")),
        ("small-oven", {}, Location(field="biography")),
        ("bread", {"biography": FANCY}, Location(field="biography")),
        ("loaf", {"posts": (post(3, caption="One LOAF."),)}, Location(field="caption", post_id="1800003")),
        ("rye bread", {"posts": (post(3, hashtags=("RyeBread",)),)}, IN_HASHTAG),
        ("bread", {"biography": "", "posts": (post(3, hashtags=("breadlover",)),)}, IN_HASHTAG),
        ("bread", {"biography": "", "posts": (post(3, hashtags=("ryebread",)),)}, IN_HASHTAG),
        ("tea", {"posts": (post(3, hashtags=("tea",)),)}, IN_HASHTAG),
        ("咖啡", {"biography": "我爱喝咖啡和茶"}, Location(field="biography")),
        ("咖啡", {"posts": (post(3, hashtags=("咖啡店",)),)}, IN_HASHTAG),
    ],
)
def test_term_is_found_with_its_location(term, fields, place):
    assert places(term, **fields) == [place]


@pytest.mark.parametrize(
    ("term", "fields"),
    [
        ("oven small", {}),
        ("read", {}),
        ("tea", {"posts": (post(3, hashtags=("team", "steam")),)}),
        ("eadlo", {"posts": (post(3, hashtags=("breadlover",)),)}),
        ("...", {"biography": "..."}),
        ("Novak Bakery", {}),  # spans the end of one field and the start of the next
        ("novakbakery", {}),
    ],
)
def test_part_of_a_word_does_not_match(term, fields):
    assert places(term, **fields) == []


def test_match_lists_a_few_locations_but_all_post_ids():
    fit = fit_of(profile(), IdealCustomer(niches=("loaf",)))

    assert len(fit.matches[0].places) == PLACES_MAX < len(fit.post_ids) == len(profile().posts)


@pytest.mark.parametrize(
    ("customer", "share"),
    [
        (IdealCustomer(), None),
        (IdealCustomer(exclusions=("bread",)), None),
        (IdealCustomer(niches=("bread",)), 1.0),
        (IdealCustomer(niches=("bread", "tea")), 0.6),
        (IdealCustomer(niches=("bread", "oven", "tea")), 0.85),
        (IdealCustomer(niches=("bread", "oven", "loaf", "tea", "art")), 1.0),
        (IdealCustomer(niches=("tea",)), 0.0),
        (IdealCustomer(niches=("bread",), content_themes=("tea",)), 0.706),
        (IdealCustomer(niches=("bread",), content_themes=("loaf",), geographies=("Vienna",)), 0.85),
        (IdealCustomer(niches=("bread",), exclusions=("loaf",)), 0.5),
        (IdealCustomer(niches=("bread",), exclusions=("cake",)), 1.0),
    ],
)
def test_share_uses_only_kinds_that_the_business_names(customer, share):
    assert fit_of(profile(), customer).share == share


def test_exclusions_are_found_with_their_locations():
    fit = fit_of(profile(), IdealCustomer(exclusions=("oven",)))

    assert [(match.kind, match.term, match.places) for match in fit.exclusions] == [
        ("exclusion", "oven", (Location(field="biography"),))
    ]
    assert fit.matches == ()


def test_weights_of_the_fit_sum_to_a_hundred():
    assert sum(WEIGHTS.values()) == 100


@given(st.text(max_size=30), st.text(max_size=10))
def test_any_term_can_be_searched_in_any_text(text, term):
    fit = fit_of(profile(biography=text), IdealCustomer(niches=(term,)))

    assert fit.share is not None
    assert 0 <= fit.share <= 1
