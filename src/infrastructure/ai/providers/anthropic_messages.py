"""Parsing of responses of Anthropic's Messages API. Only the fields that we read are declared."""

from typing import Annotated, Any, Literal

import msgspec

from infrastructure.ai.providers.base import ModelReply, ProviderError
from infrastructure.ai.providers.clients import Received
from infrastructure.ai.providers.errors import decoded
from shared.llm import Usage

Count = Annotated[int, msgspec.Meta(ge=0)]

_ENDS: dict[str, Literal["truncated", "refused"]] = {
    "max_tokens": "truncated",
    "pause_turn": "truncated",
    "refusal": "refused",
}


class _OutputDetails(msgspec.Struct):
    thinking_tokens: Count = 0


class _Usage(msgspec.Struct):
    input_tokens: Count
    output_tokens: Count
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    output_tokens_details: _OutputDetails | None = None


class _Block(msgspec.Struct):
    """Content block. ``text`` is read from text blocks and ``input`` from tool_use blocks."""

    type: str
    text: Any = None
    input: msgspec.Raw = msgspec.Raw()


class _Message(msgspec.Struct):
    type: Literal["message"]
    model: str
    content: list[_Block]
    stop_reason: str | None
    usage: _Usage


_MESSAGE = msgspec.json.Decoder(_Message)


def reply_of(received: Received) -> ModelReply:
    """Raises ProviderError when the response contains no completion."""
    message = decoded(received.body, _MESSAGE, is_simulated=received.is_simulated)
    if message.stop_reason == "model_context_window_exceeded":
        raise ProviderError(
            "invalid", was_sent=True, is_simulated=received.is_simulated, detail="200 context_window_exceeded"
        )
    return ModelReply(
        text=_text(message),
        # An unknown stop reason counts as complete: the completion is validated anyway.
        end=_ENDS.get(message.stop_reason or "", "complete"),
        usage=Usage() if received.is_from_gateway else _usage(message.usage),
        model=message.model,
        is_simulated=received.is_simulated,
        is_from_gateway=received.is_from_gateway,
        gateway_log_id=received.gateway_log_id,
    )


def _text(message: _Message) -> str:
    """The input of the forced tool call if there is one, otherwise the text."""
    handed = [bytes(block.input).decode() for block in message.content if block.type == "tool_use"]
    said = [block.text for block in message.content if block.type == "text" and isinstance(block.text, str)]
    return "".join(handed or said)


def _usage(usage: _Usage) -> Usage:
    """Anthropic counts cached tokens separately from ``input_tokens``; our ``tokens_in`` includes them."""
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Usage(
        tokens_in=usage.input_tokens + read + written,
        tokens_cached=read,
        tokens_cache_written=written,
        tokens_out=usage.output_tokens,
        tokens_reasoning=usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else 0,
    )
