"""Refund policies: never more than the hold, in full only for delivered results."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.runs.domain.refunds import (
    REFUND_POLICIES,
    REFUND_POLICY,
    REFUND_POLICY_VERSION,
    Outcome,
    credits_charged,
    settled,
)
from tests.unit.features.runs.test_estimates import a_run

OUTCOMES = get_args(Outcome)


def test_every_outcome_has_one_rule_and_a_reason():
    assert [rule.outcome for rule in REFUND_POLICY.rules] == list(OUTCOMES)
    assert all(rule.explanation.endswith(".") for rule in REFUND_POLICY.rules)


def test_policies_are_keyed_by_version_and_the_newest_is_current():
    assert {version: policy.version for version, policy in REFUND_POLICIES.items()} == {1: 1, 2: 2}
    assert REFUND_POLICY.version == REFUND_POLICY_VERSION == max(REFUND_POLICIES)


@pytest.mark.parametrize(
    ("outcome", "held", "charged"),
    [
        ("completed", 5, 5),
        ("completed_from_cache", 6, 6),
        ("private", 5, 0),
        ("not_found", 5, 0),
        ("restricted", 5, 0),
        ("icp_violation", 5, 0),
        ("cancelled_queued", 5, 0),
        ("cancelled_scraping", 5, 0),
        ("cancelled_analyzing", 1, 0),
        ("cancelled_analyzing", 5, 2),
        ("cancelled_analyzing", 6, 3),
        ("cancelled_saving", 6, 3),
        ("cancelled_saving", 3, 1),
        ("cancelled_saving", 2, 1),
        ("cancelled_saving", 1, 1),
        ("cancelled_saving", 0, 0),
        ("provider_failure", 6, 0),
        ("invalid_answer", 6, 0),
        ("timeout", 6, 0),
        ("completed", 0, 0),
    ],
)
def test_charge_per_outcome(outcome, held, charged):
    assert credits_charged(REFUND_POLICY, outcome, held) == charged


@pytest.mark.parametrize(("version", "charged"), [(1, 0), (2, 1)])
def test_a_run_is_charged_by_the_policy_version_that_it_was_quoted(version, charged):
    assert credits_charged(REFUND_POLICIES[version], "cancelled_saving", 1) == charged


def test_version_2_changes_only_the_rule_for_cancelled_saving():
    changed = set(REFUND_POLICIES[2].rules) - set(REFUND_POLICIES[1].rules)

    assert [(rule.outcome, rule.percent_charged, rule.credits_charged_min) for rule in changed] == [
        ("cancelled_saving", 50, 1)
    ]
    assert "at least 1 credit" in next(iter(changed)).explanation


@given(st.sampled_from(sorted(REFUND_POLICIES)), st.sampled_from(OUTCOMES), st.integers(0, 10**15))
def test_charge_is_rounded_down_and_never_above_the_hold(version, outcome, held):
    policy = REFUND_POLICIES[version]
    charged = credits_charged(policy, outcome, held)

    assert 0 <= charged <= held
    is_minimum = (version, outcome, charged) == (2, "cancelled_saving", 1)
    assert is_minimum or charged * 100 <= held * policy.percent_charged(outcome)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_only_delivered_results_are_charged_in_full(outcome):
    assert (REFUND_POLICY.percent_charged(outcome) == 100) is outcome.startswith("completed")


def test_unknown_outcome_is_free():
    assert credits_charged(REFUND_POLICY, "eaten_by_a_dog", 6) == 0


def test_negative_hold_fails_an_assertion():
    with pytest.raises(AssertionError):
        credits_charged(REFUND_POLICY, "completed", -1)


@pytest.mark.parametrize(("version", "charged"), [(1, 0), (2, 1)])
def test_run_is_settled_by_the_policy_it_was_quoted(version, charged):
    end = settled(a_run(refund_policy=version, credits_held=1), "cancelled", "cancelled_saving")

    assert (end.status, end.outcome, end.credits_charged, end.error) == (
        "cancelled",
        "cancelled_saving",
        charged,
        None,
    )
