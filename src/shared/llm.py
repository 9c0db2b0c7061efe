"""Prompts, completions and errors of language models, independent of the provider."""

from typing import Generic, Literal, TypeVar
from uuid import UUID

import msgspec

from shared.errors import Invalid, Unavailable, UpstreamFailed
from shared.ids import AccountId, UserId

T = TypeVar("T")

Cache = Literal["none", "exact", "gateway"]
"""Source of a completion that cost nothing: our own cache ("exact") or the gateway's."""


class CostOwner(msgspec.Struct, frozen=True, kw_only=True):
    """The entity a cost is attributed to. Without an account: the system itself or an anonymous visitor."""

    account_id: AccountId | None = None
    user_id: UserId | None = None
    run_id: UUID | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts. ``tokens_cached`` and ``tokens_cache_written`` are included in ``tokens_in``,
    ``tokens_reasoning`` in ``tokens_out``.
    """

    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_cache_written: int = 0
    tokens_out: int = 0
    tokens_reasoning: int = 0


class StructuredPrompt(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A prompt with a typed completion. ``task`` names a row of the model table, which sets the model,
    effort, length and deadline.

    ``cached_prefix`` is ordered from the least to the most frequently changing part, because providers cache
    the beginning of a prompt; ``user_message`` is the part of this call.
    """

    task: str
    cached_prefix: tuple[str, ...]
    user_message: str
    output_type: type[T]
    cost_owner: CostOwner
    is_fresh: bool = False  # bypasses the cache of earlier completions


class Completion(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    value: T
    provider: str
    model: str
    is_simulated: bool
    cache: Cache
    usage: Usage  # of this prompt; zero for a cached completion
    cost_nanodollars: int | None  # of all attempts; None when a price is unknown
    latency_ms: float


class EmbeddedTexts(msgspec.Struct, frozen=True, kw_only=True):
    vectors: tuple[tuple[float, ...], ...]  # one per text, in the same order
    model: str
    is_simulated: bool
    usage: Usage
    cost_nanodollars: int | None


class ModelsUnavailable(Unavailable):
    """No model returned a completion within the attempts and the time of the task."""

    code = "models_unavailable"
    text = "No model is available for {task} at the moment. Try again in {retry_after_s} s."


class CompletionMalformed(UpstreamFailed):
    code = "completion_malformed"
    text = "The model {model} returned two malformed completions for {task}."


class CompletionRefused(UpstreamFailed):
    code = "model_refused"
    text = "The model {model} refused the prompt of {task}."


class PromptRejected(Invalid):
    """The provider rejects the prompt permanently: it is too long or not allowed."""

    code = "prompt_rejected"
    text = "The model {model} rejects the prompt of {task}; it may be too long."
