"""Rules for the step after a failed attempt: retry, repair or fallback."""

from typing import NamedTuple

from infrastructure.ai.model_catalog import Candidate
from infrastructure.ai.routing.attempts import AttemptResult
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

    malformed_completion: str | None
    validation_error: str | None
    output_tokens_max: int


class Step(NamedTuple):
    candidate: int  # index
    wait_s: float = 0.0
    repair: Repair | None = None


class FallbackPolicy:
    """Policy of one request. ``error`` is the error to raise at the end; None: no provider answered."""

    def __init__(self, task: str, candidates: tuple[Candidate, ...], limits: FallbackLimits) -> None:
        self._task = task
        self._candidates = candidates
        self._limits = limits
        self._retries = 0  # of the current candidate
        self._is_repaired = False
        self.error: DomainError | None = None

    def next_step(
        self, step: Step, result: AttemptResult, *, has_fallback: bool, wait_max_s: float, random: float
    ) -> Step | None:
        """``has_fallback``: a later candidate is available now. ``random``: from 0 to 1, for jitter."""
        model = self._candidates[step.candidate].model.name
        match result.kind:
            case "malformed" | "truncated":
                self.error = CompletionMalformed(task=self._task, model=model)
                return self._repair(step, result) or self._fall_back(step)
            case "refused":
                self.error = CompletionRefused(task=self._task, model=model)
                return self._fall_back(step)
            case "invalid":
                return self._fall_back_to_larger_context(step)
            case "unauthorised" | "unknown_model" | "blocked" | "queued":
                return self._fall_back(step)
            case _:
                wait_s = self._retry_wait_s(result, has_fallback=has_fallback, random=random)
                if wait_s is None or wait_s > wait_max_s:
                    return self._fall_back(step)
                self._retries += 1
                return step._replace(wait_s=wait_s)

    def _fall_back(self, step: Step) -> Step | None:
        self._retries = 0
        return Step(step.candidate + 1) if step.candidate + 1 < len(self._candidates) else None

    def _retry_wait_s(self, result: AttemptResult, *, has_fallback: bool, random: float) -> float | None:
        """Delay before the next attempt at the same candidate, or None without one."""
        limits = self._limits
        retry_after_s = result.retry_after_s or 0.0
        if has_fallback:
            # The fallback answers sooner than this candidate recovers.
            is_brief = (
                result.kind not in ("timeout", "rate_limited") and retry_after_s <= limits.quick_retry_s
            )
            retries_max = limits.quick_retries_max if is_brief else 0
            wait_s = random * limits.quick_retry_s
        else:
            retries_max = limits.retries_max
            wait_s = random * limits.retry_s * 2**self._retries
        return max(wait_s, retry_after_s) if self._retries < retries_max else None

    def _repair(self, step: Step, result: AttemptResult) -> Step | None:
        if self._is_repaired or result.reply is None:
            return None
        self._is_repaired = True
        candidate = self._candidates[step.candidate]
        if result.kind == "malformed":
            shown = result.reply.text[:SHOWN_MAX]
            repair = Repair(shown, result.validation_error, candidate.output_tokens_max)
            return Step(step.candidate, repair=repair)
        output_tokens_max = min(candidate.output_tokens_max * LARGER, candidate.model.output_tokens_max)
        if output_tokens_max == candidate.output_tokens_max:
            return None  # the repair would be truncated again
        return Step(step.candidate, repair=Repair(None, None, output_tokens_max))

    def _fall_back_to_larger_context(self, step: Step) -> Step | None:
        """A prompt that is too long may fit a larger context; an invalid one is invalid for every model."""
        model = self._candidates[step.candidate].model
        following = self._fall_back(step)
        if following is not None:
            larger = self._candidates[following.candidate].model
            if larger.context_tokens_max > model.context_tokens_max:
                return following
        self.error = PromptRejected(task=self._task, model=model.name)
        return None
