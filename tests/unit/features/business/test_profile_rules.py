"""Business profile: valid texts, completeness, and bounds of the ideal customer."""

import inspect
import math
import pickle
import uuid

import pytest

from features.business.domain import errors
from features.business.domain.completeness import WEIGHTS, completeness
from features.business.domain.errors import BusinessProfilesLimit, ProfileChanged, ProfileInvalid
from features.business.domain.ideal_customer import FOLLOWERS_MAX, LISTS, IdealCustomer
from features.business.domain.profile import (
    LINE_LENGTHS_MAX,
    PROSE_LENGTHS_MAX,
    Allowance,
    BusinessProfile,
    ProfileContent,
)
from tests.support import NOON

ERRORS = [
    errors.BusinessProfileNotFound(),
    errors.BusinessProfilesLimit(limit=3, plan="growth"),
    errors.ProfileChanged(version=7),
    errors.ProfileInvalid(field="name", reason="Send 1 to 200 characters."),
]
TEXTS_MAX = {**LINE_LENGTHS_MAX, **PROSE_LENGTHS_MAX}
COMPLETE = ProfileContent(
    name="Alpine Coffee",
    website="https://alpine-coffee.example/shop?x=1#top",
    industry="Food",
    summary="Coffee.",
    offering="Beans.",
    target_audience="Drinkers.",
    value_proposition="Fresh.",
    tone="Warm",
    outreach_goal="Tastings.",
    language="de-CH",
    ideal_customer=IdealCustomer(
        followers_min=0,
        followers_max=10,
        engagement_rate_min=0,
        niches=("coffee",),
        content_themes=("brewing",),
        geographies=("Austria",),
    ),
)


def content(**fields):
    return ProfileContent(**{"name": "Alpine Coffee", **fields})


def refused_field(fields):
    with pytest.raises(ProfileInvalid) as refusal:
        content(**fields).checked()
    return refusal.value.field


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_error_survives_pickling_with_its_facts(error):
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), copy.facts) == (type(error), str(error), error.facts)
    assert str(error).endswith(".")
    assert all(str(fact) in str(error) for fact in error.args)


def test_every_error_is_listed_and_has_a_unique_code():
    kinds = {
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__
    }

    assert {type(error) for error in ERRORS} == kinds
    assert len({error.code for error in ERRORS}) == len(kinds)


@pytest.mark.parametrize("field", TEXTS_MAX)
def test_text_is_trimmed_and_kept_up_to_its_length(field):
    longest = "é" * TEXTS_MAX[field]

    assert getattr(content(**{field: f"  {longest}\u2003"}).checked(), field) == longest


@pytest.mark.parametrize("field", TEXTS_MAX)
@pytest.mark.parametrize(
    "text", ["", "   ", "\u2003", "a\0b", "\x1b[31m", "a\x85b", "a\x7f", "\ud800"], ids=ascii
)
def test_text_that_is_empty_or_has_control_characters_is_refused_by_field(field, text):
    assert refused_field({field: text}) == field


@pytest.mark.parametrize("field", TEXTS_MAX)
def test_text_that_is_too_long_is_refused_by_field(field):
    assert refused_field({field: "x" * (TEXTS_MAX[field] + 1)}) == field


@pytest.mark.parametrize("field", LINE_LENGTHS_MAX)
@pytest.mark.parametrize("text", ["a\nb", "a\tb", "a\r\nb"], ids=ascii)
def test_a_line_has_no_line_break_or_tab(field, text):
    assert refused_field({field: text}) == field


@pytest.mark.parametrize("field", PROSE_LENGTHS_MAX)
def test_prose_keeps_its_lines_however_they_end(field):
    assert getattr(content(**{field: "a\r\nb\rc\n\td"}).checked(), field) == "a\nb\nc\n\td"


@pytest.mark.parametrize("text", ["Café ☕️ 👩‍👩‍👧", "مقهى جبال الألب", "\u202eabc", "日本語"], ids=ascii)
def test_every_script_is_accepted(text):
    assert content(name=text).checked().name == text


@pytest.mark.parametrize(
    "website",
    ["https://example.com", "http://example.com:8080/a?b#c", "https://münchen.example/ö", "http://x?y"],
)
def test_website_is_stored_unchanged(website):
    assert content(website=website).checked().website == website


@pytest.mark.parametrize(
    "website",
    [
        "",
        "example.com",
        "ftp://example.com",
        "javascript:alert(1)",
        "https://",
        "https:///path",
        "https://user@example.com",
        "https://user:password@example.com/",
        "https://example.com\\@evil.example",
        "https://example.com/a b",
        "https://example.com/\n",
        "https://example.com/\0",
        "https://example.com/\ud800",
        "https://example.com:port/",
        " https://example.com",
        "https://example.com/" + "x" * 481,
    ],
    ids=lambda website: ascii(website)[:40],
)
def test_invalid_address_or_credentials_are_rejected(website):
    assert refused_field({"website": website}) == "website"


@pytest.mark.parametrize("language", ["en", "de-CH", "zh-Hant-TW", "sl-rozaj-biske"])
def test_language_tag_is_stored(language):
    assert content(language=language).checked().language == language


@pytest.mark.parametrize("language", ["", "e", "english!", "en_US", "en-", "en\n", "en" + "-abcdefgh" * 4])
def test_invalid_language_tag_is_rejected(language):
    assert refused_field({"language": language}) == "language"


@pytest.mark.parametrize("field", LISTS)
def test_list_keeps_its_order_without_case_insensitive_duplicates(field):
    customer = IdealCustomer(**{field: (" fitness ", "Yoga", "Fitness", "Cafe\u0301", "CAF\u00c9")})

    assert getattr(customer.checked(), field) == ("Fitness", "Yoga", "CAF\u00c9")


@pytest.mark.parametrize("field", LISTS)
@pytest.mark.parametrize(
    "entries",
    [("",), (" ",), ("x" * 101,), ("a\nb",), ("a\0",), ("\ud800",), tuple(map(str, range(51)))],
    ids=lambda entries: ascii(entries)[:20],
)
def test_a_list_with_a_wrong_entry_or_too_many_is_refused_by_field(field, entries):
    assert refused_field({"ideal_customer": IdealCustomer(**{field: entries})}) == f"ideal_customer.{field}"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"followers_min": -1}, "followers_min"),
        ({"followers_min": FOLLOWERS_MAX + 1}, "followers_min"),
        ({"followers_max": -1}, "followers_max"),
        ({"followers_max": 2**70}, "followers_max"),
        ({"followers_min": 2, "followers_max": 1}, "followers_max"),
        ({"engagement_rate_min": -0.01}, "engagement_rate_min"),
        ({"engagement_rate_min": 100.01}, "engagement_rate_min"),
        ({"engagement_rate_min": math.nan}, "engagement_rate_min"),
        ({"engagement_rate_min": math.inf}, "engagement_rate_min"),
    ],
)
def test_numbers_out_of_range_are_refused_by_field(fields, field):
    assert refused_field({"ideal_customer": IdealCustomer(**fields)}) == f"ideal_customer.{field}"


@pytest.mark.parametrize(
    ("sent", "kept"), [(0, 0.0), (2.5, 2.5), (3.14159, 3.14), (100, 100.0), (None, None)]
)
def test_an_engagement_rate_has_two_decimals(sent, kept):
    assert IdealCustomer(engagement_rate_min=sent).checked().engagement_rate_min == kept


@pytest.mark.parametrize(
    ("followers", "engagement_rate", "violations"),
    [
        (100, 2.5, []),
        (1_000, 99.0, []),
        (100, None, []),
        (99, 2.5, ["followers_below_min"]),
        (1_001, 2.5, ["followers_above_max"]),
        (500, 2.49, ["engagement_rate_below_min"]),
        (0, 0.0, ["followers_below_min", "engagement_rate_below_min"]),
    ],
)
def test_ideal_customer_names_the_violated_bounds(followers, engagement_rate, violations):
    customer = IdealCustomer(followers_min=100, followers_max=1_000, engagement_rate_min=2.5)

    assert customer.violations(followers, engagement_rate) == violations


def test_ideal_customer_without_bounds_has_no_violations():
    assert IdealCustomer().violations(0, 0.0) == []


def test_change_replaces_only_the_given_fields():
    changed = COMPLETE.changed({"tone": None, "name": " New "}, {"followers_min": 5, "niches": ()})

    assert (changed.name, changed.tone, changed.summary) == ("New", None, "Coffee.")
    assert (changed.ideal_customer.followers_min, changed.ideal_customer.followers_max) == (5, 10)
    assert (changed.ideal_customer.niches, changed.ideal_customer.content_themes) == ((), ("brewing",))


def test_change_is_checked_together_with_unchanged_fields():
    with pytest.raises(ProfileInvalid, match="followers_max"):
        COMPLETE.changed({}, {"followers_min": 11})


def test_weights_of_completeness_sum_to_a_hundred():
    assert sum(WEIGHTS.values()) == 100


def test_profile_with_only_a_name_lists_all_other_fields_as_missing():
    result = completeness(content())

    assert (result.percent, result.is_complete) == (WEIGHTS["name"], False)
    assert result.missing == [field for field in WEIGHTS if field != "name"]


def test_complete_profile_misses_nothing_even_if_its_numbers_are_0():
    result = completeness(COMPLETE.checked())

    assert (result.percent, result.missing, result.is_complete) == (100, [], True)


@pytest.mark.parametrize("field", [field for field in WEIGHTS if field != "name"])
def test_missing_field_is_named_and_costs_its_weight(field):
    part, _, name = field.rpartition(".")
    empty = {name: () if name in LISTS else None}
    changed = COMPLETE.changed({} if part else empty, empty if part else {})

    result = completeness(changed)

    assert (result.percent, result.missing, result.is_complete) == (100 - WEIGHTS[field], [field], False)


@pytest.mark.parametrize(("profiles_max", "count"), [(1, 0), (3, 2), (None, 1_000)])
def test_plan_with_room_allows_another_profile(profiles_max, count):
    assert Allowance(plan="free", profiles_max=profiles_max, profiles_count=count).check_room() is None


@pytest.mark.parametrize(("profiles_max", "count"), [(0, 0), (1, 1), (1, 3)])
def test_full_plan_allows_no_other_profile(profiles_max, count):
    with pytest.raises(BusinessProfilesLimit) as refusal:
        Allowance(plan="free", profiles_max=profiles_max, profiles_count=count).check_room()

    assert refusal.value.facts == {"limit": profiles_max, "plan": "free"}


def test_version_check_accepts_none_or_the_current_version():
    profile = BusinessProfile(
        id=uuid.uuid4(),
        account_id=uuid.uuid4(),
        version=3,
        content=COMPLETE,
        created_by="user:x",
        created_at=NOON,
        updated_at=NOON,
        deleted_at=None,
    )

    assert profile.check_version(None) is None
    assert profile.check_version(frozenset({1, 3})) is None
    with pytest.raises(ProfileChanged, match="version 3"):
        profile.check_version(frozenset({2}))
