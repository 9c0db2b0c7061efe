"""Refund policies: the share that is charged per outcome. Versioned: a run is settled by the version it was
quoted.

The full price is charged only for a delivered result, unless a rule's minimum applies.
"""

from typing import Literal

import msgspec

from features.runs.domain.run import EndStatus, Run, RunEnd

Outcome = Literal[
    "completed",
    "completed_from_cache",
    "private",
    "not_found",
    "restricted",
    "icp_violation",
    "cancelled_queued",
    "cancelled_scraping",
    "cancelled_analyzing",
    "cancelled_saving",
    "scrape_failure",
    "provider_failure",
    "invalid_answer",
    "refused_answer",
    "timeout",
    "internal_failure",
    "expired",
]


class RefundRule(msgspec.Struct, frozen=True, kw_only=True):
    """The percentage is rounded down; ``credits_charged_min`` applies if it is higher."""

    outcome: str
    percent_charged: int
    explanation: str
    credits_charged_min: int = 0


class RefundPolicy(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    rules: tuple[RefundRule, ...]

    def rule(self, outcome: str) -> RefundRule | None:
        """Returns None for an outcome that is newer than this version; such an outcome costs nothing."""
        return next((rule for rule in self.rules if rule.outcome == outcome), None)

    def percent_charged(self, outcome: str) -> int:
        rule = self.rule(outcome)
        return rule.percent_charged if rule else 0


def credits_charged(policy: RefundPolicy, outcome: str, credits_held: int) -> int:
    """Returns the outcome's share of the hold, rounded down, but at least the rule's minimum."""
    assert credits_held >= 0
    rule = policy.rule(outcome)
    if rule is None:
        return 0
    return min(credits_held, max(credits_held * rule.percent_charged // 100, rule.credits_charged_min))


def _rule(outcome: Outcome, percent_charged: int, explanation: str) -> RefundRule:
    return RefundRule(outcome=outcome, percent_charged=percent_charged, explanation=explanation)


VERSION_1 = RefundPolicy(
    version=1,
    rules=(
        _rule("completed", 100, "The analysis was delivered."),
        _rule(
            "completed_from_cache",
            100,
            "The analysis was delivered from a cached profile.",
        ),
        _rule("private", 0, "The profile is private and could not be analysed."),
        _rule("not_found", 0, "The profile does not exist."),
        _rule("restricted", 0, "The profile is restricted and could not be analysed."),
        _rule(
            "icp_violation",
            0,
            "The profile is outside the bounds of your ideal customer. No model was called.",
        ),
        _rule("cancelled_queued", 0, "You cancelled before the run started."),
        _rule("cancelled_scraping", 0, "You cancelled before a model was called."),
        _rule("cancelled_analyzing", 50, "You cancelled during model calls, which we pay for."),
        _rule("cancelled_saving", 50, "You cancelled after the model calls; nothing was delivered."),
        _rule("scrape_failure", 0, "The profile could not be fetched. You are not charged."),
        _rule("provider_failure", 0, "No model was available. You are not charged."),
        _rule("invalid_answer", 0, "A model's output could not be used. You are not charged."),
        _rule("refused_answer", 0, "A model declined the request. You are not charged."),
        _rule("timeout", 0, "The run took too long. You are not charged."),
        _rule("internal_failure", 0, "An internal error occurred. You are not charged."),
        _rule(
            "expired",
            0,
            "The run was paused without credits for 7 days. Delivered analyses stay charged.",
        ),
    ),
)
CANCELLED_SAVING_2 = RefundRule(
    outcome="cancelled_saving",
    percent_charged=50,
    explanation=(
        "You cancelled after the model calls, which we pay for; nothing was delivered."
        " Half of the price is charged, at least 1 credit."
    ),
    credits_charged_min=1,
)
VERSION_2 = RefundPolicy(
    version=2,
    rules=tuple(
        CANCELLED_SAVING_2 if rule.outcome == CANCELLED_SAVING_2.outcome else rule for rule in VERSION_1.rules
    ),
)
REFUND_POLICIES = {policy.version: policy for policy in (VERSION_1, VERSION_2)}
REFUND_POLICY_VERSION = VERSION_2.version
REFUND_POLICY = REFUND_POLICIES[REFUND_POLICY_VERSION]


def settled(run: Run, status: EndStatus, outcome: Outcome, error: str | None = None) -> RunEnd:
    """Return the end of the run, charged by the refund policy that was quoted when the run was started."""
    charged = credits_charged(REFUND_POLICIES[run.refund_policy], outcome, run.credits_held)
    return RunEnd(status=status, outcome=outcome, credits_charged=charged, error=error)
