"""Outcome and charge of an ended analysis run."""

from core.engine.run_context import RunCancelled, StepFailed
from features.runs.domain.refunds import REFUND_POLICIES, Outcome, credits_charged
from features.runs.domain.run import EndStatus, Run, RunEnd

SCRAPE, SAVE = "scrape", "save"
# Outcome by the error code of the failed step; any other code is an internal failure.
FAILURES: dict[str, Outcome] = {
    "profiles_unavailable": "scrape_failure",
    "models_unavailable": "provider_failure",
    "completion_malformed": "invalid_answer",
    "model_refused": "refused_answer",
}
# Outcome by the step that was cancelled; all other steps are prompts.
CANCELLATIONS: dict[str, Outcome] = {SCRAPE: "cancelled_scraping", SAVE: "cancelled_saving"}


def ended(run: Run, status: EndStatus, outcome: Outcome, error: str | None = None) -> RunEnd:
    """Charges by the refund policy that was quoted when the run was started."""
    policy = REFUND_POLICIES[run.refund_policy]
    charged = credits_charged(policy, outcome, run.credits_held)
    return RunEnd(status=status, outcome=outcome, credits_charged=charged, error=error)


def refused(run: Run, refusal: StepFailed) -> RunEnd:
    return ended(run, "failed", FAILURES.get(refusal.code, "internal_failure"), refusal.code)


def cancelled(run: Run, cancellation: RunCancelled) -> RunEnd:
    return ended(run, "cancelled", CANCELLATIONS.get(cancellation.step, "cancelled_analyzing"))
