"""What one attempt is, and how it may end."""

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
        "queued",  # no place came free in time
        "blocked",  # the breaker opened before it was asked; no attempt was made
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
# After these the provider may have worked, and nobody says how much.
MAY_CHARGE: frozenset[Kind] = frozenset({"timeout", "connection", "garbled"})
NEEDS_AN_OPERATOR: frozenset[Kind] = frozenset({"unauthorised", "unknown_model"})


class ProviderCall(Protocol[R]):
    """What is asked this time, and what is thought of the reply."""

    complaint: str | None  # about the form of the reply

    @property
    def tokens_estimated(self) -> int:
        """What goes in, should nobody say how much it was."""
        ...

    async def ask(self, deadline_s: float) -> R: ...

    def judge(self, reply: R) -> Judgement: ...


@dataclass(frozen=True, slots=True)
class Attempt(Generic[R]):
    """``deadline_s`` is for the provider, from the moment it is asked; with the waiting for a place before
    it, the attempt ends at ``ends_at_s``.
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
