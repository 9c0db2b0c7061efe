"""Scores: sums, stated inputs, and no credit for evidence that was not shown."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.analysis.domain.profile.authenticity import Signal
from features.analysis.domain.profile.facts import facts_of
from features.analysis.domain.prompting.model_outputs import Reason
from features.analysis.domain.scoring.formula import shares_of
from features.analysis.domain.scoring.icp_match import IcpMatch, fit_of
from features.analysis.domain.scoring.scoring import WEIGHTS, Score, score_of, tier_of
from tests.support import NOON
from tests.unit.features.analysis.examples import (
    BUSINESS,
    COMMERCIAL,
    DEEP,
    LIGHT,
    PSYCHOGRAPHIC,
    changed,
    post,
    profile,
)

FACTS = facts_of(profile(), NOON)
FIT = fit_of(profile(), BUSINESS.ideal_customer)
POST_IDS = {f"p{number}": f"id{number}" for number in range(1, 9)}
JUDGEMENTS = {"light": (LIGHT, None), "deep": (DEEP, None), "xray": (COMMERCIAL, PSYCHOGRAPHIC)}
PERCENT = st.integers(0, 100)


def score(analysis_type="deep", facts=FACTS, fit=FIT, **opinion):
    judgement, psychographic = JUDGEMENTS[analysis_type]
    return score_of(
        analysis_type,
        facts,
        fit,
        judgement=changed(judgement, **opinion),
        psychographic=psychographic,
        post_ids=POST_IDS,
    )


def reason(*labels):
    return Reason(effect="for", text="x", evidence=labels)


def with_rate(rate):
    return changed(FACTS, engagement=changed(FACTS.engagement, rate_median=rate))


def shares(facts=FACTS, fit=FIT):
    return {one.name: one for one in shares_of(facts, fit)}


@st.composite
def facts_and_fits(draw):
    rates = st.none() | st.floats(0, 1_000)
    facts = changed(
        FACTS,
        engagement=changed(FACTS.engagement, rate_median=draw(rates)),
        rhythm=changed(
            FACTS.rhythm,
            days_since_last_post=draw(st.none() | st.integers(0, 5_000)),
            posts_per_week=draw(st.none() | st.floats(0, 10_000)),
        ),
        authority=changed(FACTS.authority, followers_per_following=draw(st.floats(0, 1e12))),
        suspicion=draw(PERCENT),
    )
    return facts, changed(FIT, share=draw(st.none() | st.floats(0, 1)))


OPINIONS = st.fixed_dictionaries(
    {
        "overall": PERCENT,
        "niche_fit": PERCENT,
        "engagement_quality": PERCENT,
        "confidence": st.floats(0, 1),
        "reasons": st.lists(
            st.lists(st.sampled_from(["p1", "p2", "p99"]), max_size=3).map(lambda labels: reason(*labels)),
            max_size=3,
        ).map(tuple),
    }
)
TYPES = st.sampled_from([*WEIGHTS])


@settings(deadline=None, max_examples=30)
@given(TYPES, facts_and_fits(), OPINIONS)
def test_score_is_the_sum_of_its_components_and_between_0_and_100(analysis_type, person, opinion):
    made = score(analysis_type, *person, **opinion)

    assert made.total == sum(component.points for component in made.components)
    assert all(0 <= component.points <= component.points_max for component in made.components)
    assert sum(component.points_max for component in made.components) == 100
    assert {component.name: component.points_max for component in made.components} == WEIGHTS[analysis_type]
    assert all(
        0 <= number <= 100 for number in (made.total, made.niche_fit, made.engagement, made.confidence)
    )
    assert made.tier == tier_of(made.total)


@settings(deadline=None, max_examples=30)
@given(TYPES, facts_and_fits(), OPINIONS, st.floats(0, 100), st.floats(0, 100))
def test_more_engagement_never_lowers_a_score(analysis_type, person, opinion, one, other):
    facts, fit = person
    low, high = (
        score(
            analysis_type,
            changed(facts, engagement=changed(facts.engagement, rate_median=rate)),
            fit,
            **opinion,
        ).total
        for rate in sorted((one, other))
    )

    assert low <= high


@settings(deadline=None, max_examples=30)
@given(
    TYPES,
    facts_and_fits(),
    OPINIONS,
    PERCENT,
    PERCENT,
    st.sampled_from(["overall", "niche_fit", "engagement_quality"]),
)
def test_a_better_opinion_never_lowers_a_score(analysis_type, person, opinion, one, other, name):
    low, high = (
        score(analysis_type, *person, **{**opinion, name: value}).total for value in sorted((one, other))
    )

    assert low <= high


@pytest.mark.parametrize("analysis_type", WEIGHTS)
def test_score_is_deterministic_and_survives_serialization(analysis_type):
    made = score(analysis_type)

    assert made == score(analysis_type)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Score) == made


@pytest.mark.parametrize("analysis_type", WEIGHTS)
def test_points_of_a_type_sum_to_a_hundred(analysis_type):
    assert sum(WEIGHTS[analysis_type].values()) == 100


@pytest.mark.parametrize(
    ("total", "tier"),
    [
        (100, "hot"),
        (80, "hot"),
        (79, "warm"),
        (60, "warm"),
        (59, "cool"),
        (40, "cool"),
        (39, "cold"),
        (0, "cold"),
    ],
)
def test_a_score_has_a_tier(total, tier):
    assert tier_of(total) == tier


@pytest.mark.parametrize(
    ("opinion", "confidence", "total"), [(100, 1.0, 100), (0, 1.0, 50), (0, 0.0, 100), (0, 0.5, 75)]
)
def test_model_score_and_confidence_lower_the_best_profiles_total(opinion, confidence, total):
    facts = changed(
        with_rate(50.0),
        authority=changed(FACTS.authority, followers_per_following=1e6, is_verified=True, is_business=True),
    )
    fit = changed(FIT, share=1.0)
    scores = {"overall": opinion, "niche_fit": opinion, "engagement_quality": opinion}

    assert score("deep", facts, fit, confidence=confidence, **scores).total == total


def test_a_model_without_confidence_changes_nothing():
    low, high = (
        score(confidence=0.0, overall=value, niche_fit=value, engagement_quality=value).total
        for value in (0, 100)
    )

    assert low == high


@pytest.mark.parametrize(
    ("reasons", "confidence", "dropped", "evidence"),
    [
        ((reason("p1", "p2"),), 90, 0, ("id1", "id2")),
        ((reason("p1"), reason("p1", "[P2]")), 90, 0, ("id1", "id2")),
        ((reason("p1", "p99"),), 45, 1, ("id1",)),
        ((reason("17841", "id1", ""),), 0, 3, ()),
        ((reason(),), 45, 0, ()),
        ((), 45, 0, ()),
    ],
)
def test_unknown_evidence_is_dropped_and_lowers_confidence(reasons, confidence, dropped, evidence):
    made = score(reasons=reasons)

    assert (made.confidence, made.evidence_dropped) == (confidence, dropped)
    assert {one.evidence_post_ids for one in made.components if one.source == "model"} == {evidence}
    assert {one.evidence_post_ids for one in made.components if one.source == "formula"} == {()}


def test_xray_receptiveness_uses_its_own_evidence():
    made = score("xray")

    receptive = {one.name: one for one in made.components}["model_receptiveness"]
    assert receptive.evidence_post_ids == ("id3",)
    assert "50 of 100, counted by a confidence of 50 %" in receptive.input


def test_evidence_dropped_counts_both_outputs_of_an_xray():
    invented = changed(PSYCHOGRAPHIC.core_values[0], evidence=("p77",))
    made = score_of(
        "xray",
        FACTS,
        FIT,
        judgement=changed(COMMERCIAL, reasons=(reason("p88"),)),
        psychographic=changed(PSYCHOGRAPHIC, core_values=(invented,)),
        post_ids=POST_IDS,
    )

    assert made.evidence_dropped == 2


def test_xray_without_a_psychographic_output_fails_an_assertion():
    with pytest.raises(AssertionError):
        score_of("xray", FACTS, FIT, judgement=COMMERCIAL, post_ids=POST_IDS)


def test_partial_scores_are_percentages_of_their_maximum():
    made = score(confidence=1.0, niche_fit=100)

    points = {one.name: one.points for one in made.components}
    assert made.niche_fit == 100 * (points["niche_fit"] + points["model_niche_fit"]) // 36
    assert made.engagement == 100 * (points["engagement"] + points["model_engagement_quality"]) // 30


@pytest.mark.parametrize(("rate", "share"), [(None, 0.5), (0.0, 0.0), (2.4, 0.5), (4.8, 1.0), (400.0, 1.0)])
def test_engagement_is_relative_to_the_usual_rate_of_the_size(rate, share):
    assert shares(with_rate(rate))["engagement"].share == share


def test_the_formula_names_its_inputs():
    signal = Signal(name="likes_very_even", found=0.01, limit=0.05)
    said = {name: one.input for name, one in shares(changed(FACTS, signals=(signal,), suspicion=25)).items()}

    assert said == {
        "engagement": "median engagement rate 2.67 %; usual for micro: 2.40 %",
        "niche_fit": "found: nothing",
        "activity": "last post 2 days ago; 3.5 posts a week",
        "authenticity": "suspicion 25 of 100; signals: likes_very_even",
        "authority": "40 followers for each followed; not verified; business account",
    }


def test_found_and_excluded_terms_are_named():
    fit = fit_of(profile(), changed(BUSINESS.ideal_customer, niches=("bread", "oven"), exclusions=("loaf",)))

    assert shares(fit=fit)["niche_fit"].input == "found: bread, oven; excluded: loaf"
    assert (
        shares(fit=IcpMatch(share=None, matches=(), exclusions=(), post_ids=frozenset()))["niche_fit"].share
        == 0.5
    )


@pytest.mark.parametrize(
    ("days", "rate", "share"),
    [
        (0, 3.0, 1.0),
        (7, 3.0, 1.0),
        (8, 3.0, 0.82),
        (30, 9.0, 0.82),
        (90, 0.0, 0.18),
        (91, 1.5, 0.2),
        (7, None, 0.8),
    ],
)
def test_activity_is_freshness_and_rhythm(days, rate, share):
    facts = changed(FACTS, rhythm=changed(FACTS.rhythm, days_since_last_post=days, posts_per_week=rate))

    assert shares(facts)["activity"].share == pytest.approx(share)


@pytest.mark.parametrize(
    ("fields", "share"),
    [
        ({"posts": (), "posts_count": 0}, 0.0),
        ({"posts": (), "posts_count": 5}, 0.5),
        ({"posts": (post(0, posted_at=None),), "posts_count": 0}, 0.5),
    ],
)
def test_profile_without_posts_is_inactive_and_unknown_dates_are_neutral(fields, share):
    assert shares(facts_of(profile(**fields), NOON))["activity"].share == share


@pytest.mark.parametrize(
    ("fields", "share"),
    [
        ({"followers_count": 0, "category": ""}, 0.0),
        ({"followers_count": 0}, 0.1),
        ({"followers_count": 0, "category": "", "is_business": True}, 0.1),
        ({"followers_count": 0, "category": "", "is_verified": True}, 0.2),
        ({"followers_count": 9 * 300, "category": ""}, 0.35),
        ({"followers_count": 10**9, "is_verified": True}, 1.0),
    ],
)
def test_authority_is_followers_per_following_and_badges(fields, share):
    assert shares(facts_of(profile(**fields), NOON))["authority"].share == pytest.approx(share)
