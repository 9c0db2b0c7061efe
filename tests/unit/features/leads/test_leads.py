"""Leads: comparison of two analyses, and CSV rows that are safe in a spreadsheet."""

from uuid import UUID

import msgspec
import pytest

from features.analysis.domain.profile.facts import facts_of
from features.analysis.domain.scoring.icp_match import fit_of
from features.analysis.domain.scoring.scoring import score_of
from features.leads.domain.comparison import Snapshot, compare
from features.leads.domain.leads import SORTS, Lead, searchable
from shared.ids import AccountId, BusinessProfileId, LeadId
from tests.support import NOON
from tests.unit.features.analysis.examples import (
    BUSINESS,
    COMMERCIAL,
    LEAD_KEY,
    LIGHT,
    PSYCHOGRAPHIC,
    changed,
    days_before,
    post,
    profile,
)

LEAD = Lead(
    id=LeadId(UUID(int=3)),
    business_profile_id=LEAD_KEY.business_profile_id,
    platform="instagram",
    username="ana.bakes",
    full_name="Ana Novak",
    biography="Bread from a small oven.",
    followers=12_000,
    following=300,
    posts_count=90,
    is_verified=False,
    is_business=False,
    category="Bakery",
    picture_url="",
    external_urls=(),
    tier="warm",
    score=66,
    niche="baking",
    last_analysis_id=UUID(int=4),
    last_analysis_type="deep",
    last_analysed_at=NOON,
    scraped_at=NOON,
    created_at=NOON,
    updated_at=NOON,
    deleted_at=None,
    version=1,
)


def snapshot(profile_, at, *, is_xray=False, **opinion):
    facts = facts_of(profile_, at)
    score = score_of(
        "xray" if is_xray else "light",
        facts,
        fit_of(profile_, BUSINESS.ideal_customer),
        judgement=changed(COMMERCIAL if is_xray else LIGHT, **opinion),
        psychographic=PSYCHOGRAPHIC if is_xray else None,
        post_ids={"p1": "1", "p2": "2"},
    )
    stored = {
        "analysis_type": "xray" if is_xray else "light",
        "analysed_at": at,
        "facts": facts,
        "score": score,
    }
    return msgspec.convert(msgspec.to_builtins(stored), Snapshot)


def tagged(*hashtags, likes=250, **fields):
    return profile(posts=tuple(post(n, hashtags=hashtags, likes_count=likes) for n in range(4)), **fields)


def test_two_analyses_are_compared_by_number():
    before = snapshot(tagged("bread", "oven", followers_count=10_000), days_before(30), overall=50)
    after = snapshot(tagged("bread", "rye", likes=590, followers_count=12_000), NOON, overall=90)

    made = compare(before, after)
    assert (made.days_between, made.is_same_type) == (30, True)
    assert made.score_delta == after.score.total - before.score.total > 0
    assert (made.tier_before, made.tier_after) == (before.score.tier, after.score.tier)
    assert (made.followers_delta, made.followers_delta_percent, made.engagement_rate_delta) == (
        2_000,
        20.0,
        2.4,
    )
    assert (made.hashtags_new, made.hashtags_lost) == (("rye",), ("oven",))


def test_components_are_compared_in_percent_of_their_maximum():
    before, after = snapshot(profile(), days_before(1)), snapshot(profile(), NOON, is_xray=True, overall=100)

    made = compare(before, after)
    by_name = {one.name: one for one in made.components}
    assert not made.is_same_type
    assert by_name.keys() == {one.name for one in before.score.components}  # the xray has one more component
    assert by_name["authenticity"].before == by_name["authenticity"].after == 100
    assert all(one.delta == one.after - one.before for one in made.components)
    assert by_name["model_overall"].delta > 0


def test_delta_without_a_previous_value_is_unknown():
    before = snapshot(profile(followers_count=0), days_before(1))

    made = compare(before, snapshot(profile(), NOON))
    assert (made.followers_delta_percent, made.engagement_rate_delta) == (None, None)
    assert compare(snapshot(profile(), NOON), before).engagement_rate_delta is None


def test_same_profile_is_another_lead_for_another_business():
    elsewhere = changed(LEAD_KEY, business_profile_id=BusinessProfileId(UUID(int=9)))

    others = {elsewhere, changed(LEAD_KEY, account_id=AccountId(UUID(int=9)))}
    assert len({LEAD_KEY, changed(LEAD_KEY), *others}) == 3


@pytest.mark.parametrize(
    ("text", "spelling"),
    [("Ana", "aNA"), ("ANA", "\U0001d4d0\U0001d4f7\U0001d4ea"), ("Zoë", "ZOE\u0308"), ("Straße", "STRASSE")],
    ids=ascii,
)
def test_text_is_found_in_every_spelling(text, spelling):
    assert searchable(f"I am {text}!").find(searchable(spelling)) > 0


@pytest.mark.parametrize(
    ("sort", "value"), [("-last_analysed_at", NOON), ("-score", 66), ("username", "ana.bakes")]
)
def test_sorted_value_has_the_type_of_its_sort(sort, value):
    assert LEAD.sorted_by(sort) == value
    assert isinstance(value, SORTS[sort])
