"""What the gateway asks of a provider's adapter, whichever it is."""

from typing import Any, Literal, Protocol

import msgspec

from shared.llm import CostOwner, Usage

Effort = Literal["minimal", "low", "medium", "high"]

Trouble = Literal[
    "timeout",  # no answer within the deadline
    "connection",  # refused, reset, or ended in the middle
    "rate_limited",
    "unavailable",  # 5xx, overloaded
    "garbled",  # not the provider's own form: HTML, half a document
    "unauthorised",  # our key, our plan
    "unknown_model",
    "invalid",  # it will never take this request
]


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a model takes. What it would refuse is not sent."""

    temperature: bool = False
    efforts: frozenset[str] = frozenset()
    structured_output: bool = True


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    capabilities: Capabilities
    stable: tuple[str, ...]
    question: str
    schema_name: str
    schema: dict[str, Any]  # JSON Schema of the answer; the adapter makes of it what its provider takes
    effort: Effort | None
    temperature: float | None
    output_tokens_max: int
    cache_key: str  # like prompts of one tenant share it
    answer_key: str  # the same request of the same tenant has the same, and no other
    spender: CostOwner
    task: str
    is_fresh: bool
    malformed_answer: str | None = None  # to be mended: what it answered before,
    complaint: str | None = None  # and what is wrong with it


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    end: Literal["complete", "truncated", "refused"]
    usage: Usage
    model: str  # as the provider names it
    is_simulated: bool
    is_from_gateway: bool = False  # its cache answered; the provider was not asked and charges nothing
    gateway_log_id: str | None = None


class EmbeddingReply(msgspec.Struct, frozen=True, kw_only=True):
    vectors: tuple[tuple[float, ...], ...]
    usage: Usage
    model: str
    is_simulated: bool


class ProviderError(Exception):
    """Why there is no reply. ``was_sent``: the provider may have worked, and may charge for it."""

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
        self.detail = detail  # status and code, never the provider's text: it may quote the prompt


class ModelProvider(Protocol):
    """Raises ProviderTrouble and nothing else. A cancelled task ends the call at the other end, too.
    Makes one attempt: whether there is another is the gateway's decision.
    """

    name: str

    async def ask(self, request: ModelRequest, *, deadline_s: float) -> ModelReply: ...

    async def prepare(self) -> None:
        """What the first question would otherwise wait for. Never fails."""
        ...

    async def close(self) -> None: ...


class EmbeddingProvider(Protocol):
    """As above."""

    name: str

    async def embed(
        self, texts: tuple[str, ...], *, model: str, dimensions: int | None, deadline_s: float
    ) -> EmbeddingReply: ...
