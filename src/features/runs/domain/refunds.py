"""What a run costs, by how it ended. Versioned data: a run is settled by the policy it was quoted.

One rule stands above the rows: the full price is charged only for a result that was delivered.
"""

from typing import Literal

import msgspec

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
    outcome: str
    percent_charged: int
    explanation: str


class RefundPolicy(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    rules: tuple[RefundRule, ...]

    def percent_charged(self, outcome: str) -> int:
        """An outcome that a policy does not know was added after it: whoever was quoted it pays nothing."""
        return next((rule.percent_charged for rule in self.rules if rule.outcome == outcome), 0)


def credits_charged(policy: RefundPolicy, outcome: str, credits_held: int) -> int:
    """Of what was held, rounded down: half a credit is the customer's."""
    assert credits_held >= 0
    return credits_held * policy.percent_charged(outcome) // 100


def _rule(outcome: Outcome, percent_charged: int, explanation: str) -> RefundRule:
    return RefundRule(outcome=outcome, percent_charged=percent_charged, explanation=explanation)


REFUND_POLICY_VERSION = 1
REFUND_POLICIES: dict[int, RefundPolicy] = {
    1: RefundPolicy(
        version=1,
        rules=(
            _rule("completed", 100, "The analysis was delivered."),
            _rule(
                "completed_from_cache",
                100,
                "The analysis was delivered. That the profile had been looked at before made it faster.",
            ),
            _rule("private", 0, "The profile is private: there was nothing to analyse."),
            _rule("not_found", 0, "There is no such profile."),
            _rule("restricted", 0, "The profile is shown only to some: there was nothing to analyse."),
            _rule(
                "icp_violation",
                0,
                "The profile is outside the bounds of your ideal customer. No model was asked.",
            ),
            _rule("cancelled_queued", 0, "You cancelled before anything was done."),
            _rule("cancelled_scraping", 0, "You cancelled before a model was asked."),
            _rule("cancelled_analyzing", 50, "You cancelled while models were at work, which we pay for."),
            _rule(
                "cancelled_saving", 50, "You cancelled after the models had answered; nothing was delivered."
            ),
            _rule("scrape_failure", 0, "The profile could not be looked at. That is ours to bear."),
            _rule("provider_failure", 0, "No model answered. That is ours to bear."),
            _rule("invalid_answer", 0, "A model's answer could not be used. That is ours to bear."),
            _rule("refused_answer", 0, "A model declined to answer. That is ours to bear."),
            _rule("timeout", 0, "It took too long. That is ours to bear."),
            _rule("internal_failure", 0, "Something failed on our side."),
            _rule(
                "expired",
                0,
                "It was paused for lack of credits for 7 days. What was delivered stays charged.",
            ),
        ),
    )
}
REFUND_POLICY = REFUND_POLICIES[REFUND_POLICY_VERSION]
