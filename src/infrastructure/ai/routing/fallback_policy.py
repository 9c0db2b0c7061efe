"""What to do after an attempt that has not answered: the rules, and nothing else."""

from typing import NamedTuple

from infrastructure.ai.providers.base import ModelReply
from infrastructure.ai.routing.attempt import AttemptResult, R
from infrastructure.ai.routing.candidates import Candidate
from shared.errors import DomainError
from shared.llm import CompletionMalformed, CompletionRefused, PromptRejected

SHOWN_MAX = 20_000  # characters of a malformed answer are shown to the model again
LARGER = 4  # times the output that was not enough


class FallbackLimits(NamedTuple):
    """Delays are drawn between nothing and the time given, which doubles with every retry."""

    retries_max: int = 2  # where there is nobody else to ask
    retry_s: float = 3.0
    quick_retries_max: int = 1  # where there is
    quick_retry_s: float = 0.5
    waits_max_s: float = 20.0  # of one question, all together
    attempt_min_s: float = 1.0  # with less time left nobody is asked


class Repair(NamedTuple):
    """Of an answer in the wrong form. A truncated one is not shown again: it was right so far, and long."""

    malformed_answer: str | None
    complaint: str | None
    output_tokens_max: int


class Step(NamedTuple):
    leg: int
    wait_s: float = 0.0
    repair: Repair | None = None


class AttemptContext(NamedTuple):
    """Of things as they are when an attempt has ended."""

    complaint: str | None  # about the form of the answer
    has_other: bool  # another model behind this one may be asked now
    wait_max_s: float
    chance: float  # 0 to 1


class FallbackPolicy:
    """Of one question. ``verdict`` is what to say when nothing more can be done; None: nobody answered."""

    def __init__(self, task: str, legs: tuple[Candidate, ...], patience: FallbackLimits) -> None:
        self._task = task
        self._legs = legs
        self._patience = patience
        self._retries = 0  # at this model
        self._is_repaired = False
        self.verdict: DomainError | None = None

    def after(self, step: Step, ended: AttemptResult[R], view: AttemptContext) -> Step | None:
        model = self._legs[step.leg].model.name
        match ended.kind:
            case "malformed" | "truncated":
                self.verdict = CompletionMalformed(self._task, model)
                return self._repaired(step, ended, view.complaint) or self._next(step)
            case "refused":
                self.verdict = CompletionRefused(self._task, model)
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
            # It answers sooner than this one recovers.
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
            return None  # it would end at the same place
        return Step(step.leg, repair=Repair(None, None, output_tokens_max))

    def _wider(self, step: Step) -> Step | None:
        """What is too long for one may fit another; what is wrong is wrong for all."""
        model = self._legs[step.leg].model
        following = self._next(step)
        if (
            following is not None
            and self._legs[following.leg].model.context_tokens_max > model.context_tokens_max
        ):
            return following
        self.verdict = PromptRejected(self._task, model.name)
        return None
