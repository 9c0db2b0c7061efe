"""One attempt at a model and its possible results."""

from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from features.costs.domain.provider_calls import CallOutcome
from infrastructure.ai.model_catalog import Model
from infrastructure.ai.providers.base import EmbeddingReply, ModelReply, Trouble

R = TypeVar("R", bound=ModelReply | EmbeddingReply)

Judgement = Literal["answered", "malformed", "truncated", "refused"]
Kind = (
    Judgement
    | Trouble
    | Literal[
        "queued",  # no slot became free in time
        "blocked",  # the circuit breaker opened before the call; no attempt was made
    ]
)

OUTCOMES: dict[Kind, CallOutcome] = {
    "answered": "answered",
    "malformed": "malformed",
    "truncated": "malformed",
    "refused": "refused",
    "timeout": "timeout",
    "rate_limited": "rate_limited",
    "invalid": "invalid",
    "connection": "unavailable",
    "unavailable": "unavailable",
    "garbled": "unavailable",
    "unauthorised": "unavailable",
    "unknown_model": "unavailable",
}
ILL: frozenset[Kind] = frozenset({"timeout", "connection", "unavailable", "garbled"})
# After these failures the provider may have charged for an unknown number of tokens.
MAY_CHARGE: frozenset[Kind] = frozenset({"timeout", "connection", "garbled"})
NEEDS_AN_OPERATOR: frozenset[Kind] = frozenset({"unauthorised", "unknown_model"})


class ProviderCall(Protocol[R]):
    """One prepared call to a provider and the validation of its reply."""

    complaint: str | None  # validation error of the reply

    @property
    def tokens_estimated(self) -> int:
        """Estimate of the input tokens, used when the provider reports no usage."""
        ...

    async def ask(self, deadline_s: float) -> R: ...

    def judge(self, reply: R) -> Judgement: ...


@dataclass(frozen=True, slots=True)
class Attempt(Generic[R]):
    """``deadline_s`` is the provider's time from the start of the call. ``ends_at_s`` is the end of the
    attempt including the wait for a slot.
    """

    model: Model
    trial: ProviderCall[R]
    deadline_s: float
    ends_at_s: float


@dataclass(frozen=True, slots=True)
class AttemptResult(Generic[R]):
    kind: Kind
    reply: R | None = None
    retry_after_s: float | None = None
