"""Rules for the step after a failed attempt: retry, repair or fallback."""

from typing import NamedTuple

from infrastructure.ai.providers.base import ModelReply
from infrastructure.ai.routing.attempt import AttemptResult, R
from infrastructure.ai.routing.candidates import Candidate
from shared.errors import DomainError
from shared.llm import CompletionMalformed, CompletionRefused, PromptRejected

SHOWN_MAX = 20_000  # characters of a malformed completion in the repair prompt
LARGER = 4  # factor for the output limit after a truncation


class FallbackLimits(NamedTuple):
    """Delays are random between zero and the given time, which doubles with every retry."""

    retries_max: int = 2  # without another candidate
    retry_s: float = 3.0
    quick_retries_max: int = 1  # with another candidate
    quick_retry_s: float = 0.5
    waits_max_s: float = 20.0  # total per request
    attempt_min_s: float = 1.0  # no attempt starts with less time left


class Repair(NamedTuple):
    """Repair of a malformed completion. A truncated one is not shown again: it was valid so far, but long."""

    malformed_answer: str | None
    complaint: str | None
    output_tokens_max: int


class Step(NamedTuple):
    leg: int
    wait_s: float = 0.0
    repair: Repair | None = None


class AttemptContext(NamedTuple):
    """State at the end of an attempt."""

    complaint: str | None  # validation error of the completion
    has_other: bool  # a later candidate is available now
    wait_max_s: float
    chance: float  # random number from 0 to 1, for jitter


class FallbackPolicy:
    """Policy of one request. ``verdict`` is the error to raise at the end; None: no provider answered."""

    def __init__(self, task: str, legs: tuple[Candidate, ...], patience: FallbackLimits) -> None:
        self._task = task
        self._legs = legs
        self._patience = patience
        self._retries = 0  # of the current candidate
        self._is_repaired = False
        self.verdict: DomainError | None = None

    def after(self, step: Step, ended: AttemptResult[R], view: AttemptContext) -> Step | None:
        model = self._legs[step.leg].model.name
        match ended.kind:
            case "malformed" | "truncated":
                self.verdict = CompletionMalformed(task=self._task, model=model)
                return self._repaired(step, ended, view.complaint) or self._next(step)
            case "refused":
                self.verdict = CompletionRefused(task=self._task, model=model)
                return self._next(step)
            case "invalid":
                return self._wider(step)
            case "unauthorised" | "unknown_model" | "blocked" | "queued":
                return self._next(step)
            case _:
                return self._again(step, ended, view) or self._next(step)

    def _next(self, step: Step) -> Step | None:
        self._retries = 0
        return Step(step.leg + 1) if step.leg + 1 < len(self._legs) else None

    def _again(self, step: Step, ended: AttemptResult[R], view: AttemptContext) -> Step | None:
        patience = self._patience
        told_s = ended.retry_after_s or 0.0
        if view.has_other:
            # The other candidate answers sooner than this one recovers.
            is_hopeful = ended.kind not in ("timeout", "rate_limited") and told_s <= patience.quick_retry_s
            retries_max = patience.quick_retries_max if is_hopeful else 0
            wait_s = view.chance * patience.quick_retry_s
        else:
            retries_max = patience.retries_max
            wait_s = view.chance * patience.retry_s * 2**self._retries
        wait_s = max(wait_s, told_s)
        if self._retries >= retries_max or wait_s > view.wait_max_s:
            return None
        self._retries += 1
        return step._replace(wait_s=wait_s)

    def _repaired(self, step: Step, ended: AttemptResult[R], complaint: str | None) -> Step | None:
        if self._is_repaired or not isinstance(ended.reply, ModelReply):
            return None
        self._is_repaired = True
        leg = self._legs[step.leg]
        if ended.kind == "malformed":
            shown = ended.reply.text[:SHOWN_MAX]
            return Step(step.leg, repair=Repair(shown, complaint, leg.output_tokens_max))
        output_tokens_max = min(leg.output_tokens_max * LARGER, leg.model.output_tokens_max)
        if output_tokens_max == leg.output_tokens_max:
            return None  # the repair would be truncated again
        return Step(step.leg, repair=Repair(None, None, output_tokens_max))

    def _wider(self, step: Step) -> Step | None:
        """A prompt that is too long may fit a larger context; an invalid one is invalid for every model."""
        model = self._legs[step.leg].model
        following = self._next(step)
        if (
            following is not None
            and self._legs[following.leg].model.context_tokens_max > model.context_tokens_max
        ):
            return following
        self.verdict = PromptRejected(task=self._task, model=model.name)
        return None
