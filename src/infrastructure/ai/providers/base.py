"""Interface of the model providers, their requests, replies and errors."""

import hashlib
from typing import Any, Literal, Protocol

import msgspec

from infrastructure.ai.response_format import ResponseFormat
from shared.llm import CostOwner, Usage

Effort = Literal["minimal", "low", "medium", "high"]

ErrorKind = Literal[
    "timeout",  # no response within the deadline
    "connection",  # refused, reset, or closed during the response
    "rate_limited",
    "unavailable",  # 5xx, overloaded
    "malformed_response",  # not the provider's format, e.g. HTML or a truncated document
    "unauthorised",  # our key or our plan is rejected
    "unknown_model",
    "invalid",  # the provider will never accept this request
]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    cached_prefix: tuple[str, ...]
    user_message: str
    response_format: ResponseFormat[Any]
    effort: Effort | None  # None: the model has no efforts
    temperature: float | None
    output_tokens_max: int
    prefix_key: str  # shared by prompts of one tenant with the same prefix
    completion_key: str  # unique per tenant and request
    owner: CostOwner
    task: str
    is_fresh: bool
    malformed_completion: str | None = None  # for a repair
    validation_error: str | None = None  # for a repair

    @property
    def prefix_parts(self) -> list[str]:
        return [part for part in self.cached_prefix if part.strip()]  # providers reject an empty part

    @property
    def messages(self) -> list[dict[str, str]]:
        """The user message; for a repair also the malformed completion and the validation error."""
        messages = [{"role": "user", "content": self.user_message}]
        if self.validation_error is not None:
            if self.malformed_completion and self.malformed_completion.strip():
                messages.append({"role": "assistant", "content": self.malformed_completion})
            messages.append({"role": "user", "content": self.validation_error})
        return messages

    @property
    def tenant_pseudonym(self) -> str | None:
        return None if self.owner.account_id is None else pseudonym(str(self.owner.account_id))


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    usage: Usage
    model: str  # name returned by the provider
    is_simulated: bool
    text: str = ""
    end: Literal["complete", "truncated", "refused"] = "complete"
    is_from_gateway: bool = False  # answered from the gateway's cache; the provider charges nothing
    gateway_log_id: str | None = None


class EmbeddingReply(ModelReply, frozen=True, kw_only=True):
    vectors: tuple[tuple[float, ...], ...]


class ProviderError(Exception):
    """Classified failure of a provider. ``was_sent``: the provider may have processed and charged it."""

    def __init__(
        self,
        kind: ErrorKind,
        *,
        was_sent: bool,
        is_simulated: bool,
        retry_after_s: float | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(kind, detail)
        self.kind: ErrorKind = kind
        self.was_sent = was_sent
        self.is_simulated = is_simulated
        self.retry_after_s = retry_after_s
        self.detail = detail  # status and code only: the provider's text may quote the prompt


class ModelProvider(Protocol):
    """Raises only ProviderError. Cancelling the task also closes the connection to the provider. Makes one
    attempt, because the gateway decides about retries.
    """

    name: str

    async def complete(self, request: ModelRequest, *, deadline_s: float) -> ModelReply: ...

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


def pseudonym(text: str) -> str:
    """Deterministic hash from which the text cannot be recovered."""
    return hashlib.sha256(text.encode()).hexdigest()


def encode_body(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # lone surrogate, which JSON cannot encode
        pass  # raised below, so that no exception context quotes the prompt
    raise ProviderError("invalid", was_sent=False, is_simulated=False, detail="not Unicode")
