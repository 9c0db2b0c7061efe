"""Response schemas of quotes."""

from uuid import UUID

import msgspec

from features.analysis.application.quotes import Quote, RefundTerm
from features.analysis.domain.scoring.ideal_customer import Violation

REFUND_POLICY_URL = "/v1/refund-policy"


class ChecksResponse(msgspec.Struct, frozen=True, kw_only=True):
    outcome: str
    violations: list[Violation]


class PlanResponse(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    runs_at_once: int
    runs_at_work: int
    light_per_hour: int
    bulk_max: int


class QuotedRefundsResponse(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    url: str
    rules: list[RefundTerm]


class QuoteResponse(msgspec.Struct, frozen=True, kw_only=True):
    credits: int
    credits_available: int
    is_affordable: bool
    is_duplicate: bool
    duplicate_run_id: UUID | None
    is_cached: bool
    checks: ChecksResponse | None
    eta_s: int
    plan: PlanResponse
    refund_policy: QuotedRefundsResponse


QUOTE_EXAMPLE = {
    "credits": 1,
    "credits_available": 24,
    "is_affordable": True,
    "is_duplicate": False,
    "duplicate_run_id": None,
    "is_cached": True,
    "checks": {
        "outcome": "icp_violation",
        "violations": [{"name": "followers_above_max", "found": 281_000_000.0, "limit": 250_000.0}],
    },
    "eta_s": 3,
    "plan": {"name": "pro", "runs_at_once": 5, "runs_at_work": 0, "light_per_hour": 150, "bulk_max": 100},
    "refund_policy": {
        "version": 2,
        "url": REFUND_POLICY_URL,
        "rules": [
            {
                "outcome": "private",
                "percent_charged": 0,
                "explanation": "The profile is private.",
                "credits_charged_min": 0,
            },
        ],
    },
}


def quote_out(quote: Quote) -> QuoteResponse:
    terms, checks = quote.terms, quote.checks
    return QuoteResponse(
        credits=quote.credits,
        credits_available=terms.credits_available,
        is_affordable=quote.is_affordable,
        is_duplicate=terms.duplicate_run_id is not None,
        duplicate_run_id=terms.duplicate_run_id,
        is_cached=quote.is_cached,
        checks=checks and ChecksResponse(outcome=checks.outcome, violations=list(checks.violations)),
        eta_s=quote.eta_s,
        plan=PlanResponse(
            name=terms.plan,
            runs_at_once=terms.runs_at_once,
            runs_at_work=terms.runs_at_work,
            light_per_hour=terms.light_per_hour,
            bulk_max=terms.bulk_max,
        ),
        refund_policy=QuotedRefundsResponse(
            version=quote.refund.version, url=REFUND_POLICY_URL, rules=list(quote.refund.rules)
        ),
    )
