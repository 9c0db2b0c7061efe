"""What a slice says when it asks a model, and what it gets. Which model answers is not its business."""

from typing import Generic, Literal, TypeVar
from uuid import UUID

import msgspec

from shared.errors import Invalid, Unavailable, UpstreamFailed
from shared.ids import AccountId, UserId

T = TypeVar("T")

Cache = Literal["none", "exact", "shared", "gateway"]
"""Where an answer came from that cost nothing: our own memory of it, a call that was under way for the
same question, or the gateway in front of the provider.
"""


class CostOwner(msgspec.Struct, frozen=True, kw_only=True):
    """For whom money is spent. Without an account: for the system itself, or for an anonymous visitor."""

    account_id: AccountId | None = None
    user_id: UserId | None = None
    run_id: UUID | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens, each counted once: ``tokens_cached`` and ``tokens_cache_written`` are parts of
    ``tokens_in``, ``tokens_reasoning`` is a part of ``tokens_out``.
    """

    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_cache_written: int = 0
    tokens_out: int = 0
    tokens_reasoning: int = 0


class StructuredPrompt(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """``task`` is a row of the model table: it decides model, effort, length and deadline. ``stable``
    comes first, what changes least before what changes more, because providers remember a prompt's
    beginning; ``question`` is what is asked this time.
    """

    task: str
    stable: tuple[str, ...]
    question: str
    answer: type[T]
    spender: CostOwner
    is_fresh: bool = False  # asks for a new answer, even where the same question was answered before


class Completion(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    value: T
    provider: str
    model: str
    is_simulated: bool
    cache: Cache
    usage: Usage  # of this question: a remembered answer used none
    cost_nanodollars: int | None  # of every attempt it took; None when a price is not known
    latency_ms: float


class EmbeddedTexts(msgspec.Struct, frozen=True, kw_only=True):
    vectors: tuple[tuple[float, ...], ...]  # one a text, in the texts' order
    model: str
    is_simulated: bool
    usage: Usage
    cost_nanodollars: int | None


class ModelsUnavailable(Unavailable):
    """No model answered within the attempts and the time that the task allows."""

    code = "models_unavailable"

    def __init__(self, task: str, retry_after_s: int) -> None:
        super().__init__(task, retry_after_s)
        self.task, self.retry_after_s = task, retry_after_s

    def __str__(self) -> str:
        return f"No model answers for {self.task} at the moment. Try again in {self.retry_after_s} s."


class CompletionMalformed(UpstreamFailed):
    code = "model_answer_malformed"

    def __init__(self, task: str, model: str) -> None:
        super().__init__(task, model)
        self.task, self.model = task, model

    def __str__(self) -> str:
        return f"The model {self.model} answered {self.task} twice in a form that cannot be used."


class CompletionRefused(UpstreamFailed):
    code = "model_refused"

    def __init__(self, task: str, model: str) -> None:
        super().__init__(task, model)
        self.task, self.model = task, model

    def __str__(self) -> str:
        return f"The model {self.model} declined to answer {self.task}."


class PromptRejected(Invalid):
    """The provider understood the request and will never take it: too long, or not what it allows."""

    code = "model_question_invalid"

    def __init__(self, task: str, model: str) -> None:
        super().__init__(task, model)
        self.task, self.model = task, model

    def __str__(self) -> str:
        return f"The model {self.model} does not take this question for {self.task}; it may be too long."
