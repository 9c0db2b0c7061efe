"""Interface of the model providers, their requests, replies and errors."""

from typing import Any, Literal, Protocol

import msgspec

from shared.llm import CostOwner, Usage

Effort = Literal["minimal", "low", "medium", "high"]

Trouble = Literal[
    "timeout",  # no response within the deadline
    "connection",  # refused, reset, or closed during the response
    "rate_limited",
    "unavailable",  # 5xx, overloaded
    "garbled",  # not the provider's format, e.g. HTML or a truncated document
    "unauthorised",  # our key or our plan is rejected
    "unknown_model",
    "invalid",  # the provider will never accept this request
]


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Features of a model. Parameters that the model would reject are not sent."""

    temperature: bool = False
    efforts: frozenset[str] = frozenset()
    structured_output: bool = True


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    capabilities: Capabilities
    stable: tuple[str, ...]
    question: str
    schema_name: str
    schema: dict[str, Any]  # JSON Schema of the response; the adapter converts it for its provider
    effort: Effort | None
    temperature: float | None
    output_tokens_max: int
    cache_key: str  # shared by prompts of one tenant with the same prefix
    answer_key: str  # unique per tenant and request
    spender: CostOwner
    task: str
    is_fresh: bool
    malformed_answer: str | None = None  # for a repair: the malformed completion
    complaint: str | None = None  # for a repair: the validation error


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    end: Literal["complete", "truncated", "refused"]
    usage: Usage
    model: str  # name returned by the provider
    is_simulated: bool
    is_from_gateway: bool = False  # answered from the gateway's cache; the provider charges nothing
    gateway_log_id: str | None = None


class EmbeddingReply(msgspec.Struct, frozen=True, kw_only=True):
    vectors: tuple[tuple[float, ...], ...]
    usage: Usage
    model: str
    is_simulated: bool


class ProviderError(Exception):
    """Classified failure of a provider. ``was_sent``: the provider may have processed and charged it."""

    def __init__(
        self,
        trouble: Trouble,
        *,
        was_sent: bool,
        is_simulated: bool,
        retry_after_s: float | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(trouble, detail)
        self.trouble: Trouble = trouble
        self.was_sent = was_sent
        self.is_simulated = is_simulated
        self.retry_after_s = retry_after_s
        self.detail = detail  # status and code only: the provider's text may quote the prompt


class ModelProvider(Protocol):
    """Raises only ProviderError. Cancelling the task also closes the connection to the provider. Makes one
    attempt, because the gateway decides about retries.
    """

    name: str

    async def ask(self, request: ModelRequest, *, deadline_s: float) -> ModelReply: ...

    async def prepare(self) -> None:
        """Do the slow initialization in advance. Never fails."""
        ...

    async def close(self) -> None: ...


class EmbeddingProvider(Protocol):
    """Same guarantees as ModelProvider."""

    name: str

    async def embed(
        self, texts: tuple[str, ...], *, model: str, dimensions: int | None, deadline_s: float
    ) -> EmbeddingReply: ...
