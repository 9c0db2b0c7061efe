"""Outcome of an ended analysis run. The refund policy of the runs slice sets the charge of each outcome."""

from typing import Literal

SCRAPE, SAVE = "scrape", "save"  # steps; all other steps are prompts

Completion = Literal["completed", "completed_from_cache"]
Failure = Literal[
    "scrape_failure", "provider_failure", "invalid_answer", "refused_answer", "internal_failure"
]
Cancellation = Literal["cancelled_scraping", "cancelled_analyzing", "cancelled_saving"]

_FAILURES: dict[str, Failure] = {
    "profiles_unavailable": "scrape_failure",
    "models_unavailable": "provider_failure",
    "completion_malformed": "invalid_answer",
    "model_refused": "refused_answer",
}
_CANCELLATIONS: dict[str, Cancellation] = {SCRAPE: "cancelled_scraping", SAVE: "cancelled_saving"}


def completion_outcome(*, is_cached: bool) -> Completion:
    return "completed_from_cache" if is_cached else "completed"


def failure_outcome(error_code: str) -> Failure:
    """``error_code`` is the code of the failed step; an unknown code is an internal failure."""
    return _FAILURES.get(error_code, "internal_failure")


def cancellation_outcome(step: str) -> Cancellation:
    """``step`` is the step that was interrupted."""
    return _CANCELLATIONS.get(step, "cancelled_analyzing")
