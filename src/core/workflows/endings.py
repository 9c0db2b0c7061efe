"""How a run of analysis ends, and what it costs then."""

from core.engine.run_context import RunCancelled, StepFailed
from features.runs.domain.refunds import REFUND_POLICIES, Outcome, credits_charged
from features.runs.domain.run import EndStatus, Run, RunEnd

SCRAPE, SAVE = "scrape", "save"
# By the code with which a step was refused; any other is our own failure.
FAILURES: dict[str, Outcome] = {
    "profiles_unavailable": "scrape_failure",
    "models_unavailable": "provider_failure",
    "model_answer_malformed": "invalid_answer",
    "model_refused": "refused_answer",
}
# By the step in which it was cancelled; the others ask models.
CANCELLATIONS: dict[str, Outcome] = {SCRAPE: "cancelled_scraping", SAVE: "cancelled_saving"}


def ended(run: Run, status: EndStatus, outcome: Outcome, error: str | None = None) -> RunEnd:
    """Charged by the policy that the run was quoted."""
    policy = REFUND_POLICIES[run.refund_policy]
    charged = credits_charged(policy, outcome, run.credits_held)
    return RunEnd(status=status, outcome=outcome, credits_charged=charged, error=error)


def refused(run: Run, refusal: StepFailed) -> RunEnd:
    return ended(run, "failed", FAILURES.get(refusal.code, "internal_failure"), refusal.code)


def cancelled(run: Run, cancellation: RunCancelled) -> RunEnd:
    return ended(run, "cancelled", CANCELLATIONS.get(cancellation.step, "cancelled_analyzing"))
