"""What is charged: never more than was held, in full only for what was delivered."""

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
)

OUTCOMES = get_args(Outcome)


def test_every_outcome_has_one_rule_and_a_reason():
    assert [rule.outcome for rule in REFUND_POLICY.rules] == list(OUTCOMES)
    assert all(rule.explanation.endswith(".") for rule in REFUND_POLICY.rules)


def test_versions_are_their_own_names():
    assert {version: policy.version for version, policy in REFUND_POLICIES.items()} == {1: 1}
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
        ("provider_failure", 6, 0),
        ("invalid_answer", 6, 0),
        ("timeout", 6, 0),
        ("completed", 0, 0),
    ],
)
def test_what_an_outcome_costs(outcome, held, charged):
    assert credits_charged(REFUND_POLICY, outcome, held) == charged


@given(st.sampled_from(OUTCOMES), st.integers(0, 10**15))
def test_a_charge_is_whole_never_above_the_hold_and_in_the_customers_favour(outcome, held):
    charged = credits_charged(REFUND_POLICY, outcome, held)

    assert 0 <= charged <= held
    assert charged * 100 <= held * REFUND_POLICY.percent_charged(outcome)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_only_what_was_delivered_is_charged_in_full(outcome):
    assert (REFUND_POLICY.percent_charged(outcome) == 100) is outcome.startswith("completed")


def test_an_outcome_that_the_policy_does_not_know_is_free():
    assert credits_charged(REFUND_POLICY, "eaten_by_a_dog", 6) == 0


def test_a_negative_hold_is_a_mistake_of_ours():
    with pytest.raises(AssertionError):
        credits_charged(REFUND_POLICY, "completed", -1)
