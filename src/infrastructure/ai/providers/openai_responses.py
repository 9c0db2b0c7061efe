"""Parsing of responses of OpenAI's Responses API. Only the fields that we read are declared."""

from typing import Annotated, Literal

import msgspec

from infrastructure.ai.providers.base import ModelReply, ProviderError, Trouble
from infrastructure.ai.providers.clients import Received
from infrastructure.ai.providers.errors import decoded, malformed_response, readable_code
from shared.llm import Usage

Count = Annotated[int, msgspec.Meta(ge=0)]

_FAILURES: dict[str, Trouble] = {
    "": "unavailable",
    "server_error": "unavailable",
    "vector_store_timeout": "unavailable",
    "rate_limit_exceeded": "rate_limited",
}


class _InputDetails(msgspec.Struct):
    cached_tokens: Count = 0
    cache_write_tokens: Count = 0


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: Count = 0


class _Usage(msgspec.Struct):
    input_tokens: Count
    output_tokens: Count
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Part(msgspec.Struct):
    type: str
    text: str = ""


class _Item(msgspec.Struct):
    """Output item. Only messages are read; ``content`` has another meaning in each other type."""

    type: str
    content: msgspec.Raw = msgspec.Raw(b"[]")
    phase: str | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Error(msgspec.Struct):
    code: str | None = None


class _Response(msgspec.Struct):
    object: Literal["response"]
    status: str
    model: str
    output: list[_Item] | None
    usage: _Usage | None = None
    incomplete_details: _Incomplete | None = None
    error: _Error | None = None


_RESPONSE = msgspec.json.Decoder(_Response)
_PARTS = msgspec.json.Decoder(list[_Part] | None)


def reply_of(received: Received) -> ModelReply:
    """Raises ProviderError when the response contains no completion."""
    response = decoded(received.body, _RESPONSE, is_simulated=received.is_simulated)
    if response.status == "failed":
        raise _failure(response.error, is_simulated=received.is_simulated)
    if response.status not in {"completed", "incomplete"} or response.usage is None:
        # A response without usage would be recorded at no cost.
        raise malformed_response("200", is_simulated=received.is_simulated)
    parts = _parts(response, is_simulated=received.is_simulated)
    return ModelReply(
        text="".join(part.text for part in parts if part.type == "output_text"),
        end=_end(response, parts),
        usage=Usage() if received.is_from_gateway else _usage(response.usage),
        model=response.model,
        is_simulated=received.is_simulated,
        is_from_gateway=received.is_from_gateway,
        gateway_log_id=received.gateway_log_id,
    )


def _failure(error: _Error | None, *, is_simulated: bool) -> ProviderError:
    code = readable_code(error.code) if error else ""
    return ProviderError(
        _FAILURES.get(code, "invalid"),
        was_sent=True,
        is_simulated=is_simulated,
        detail=f"failed {code}".rstrip(),
    )


def _parts(response: _Response, *, is_simulated: bool) -> list[_Part]:
    """Parts of the final answer, without the model's intermediate messages."""
    return [
        part
        for item in response.output or ()
        if item.type == "message" and item.phase in {None, "final_answer"}
        for part in decoded(bytes(item.content), _PARTS, is_simulated=is_simulated) or ()
    ]


def _end(response: _Response, parts: list[_Part]) -> Literal["complete", "truncated", "refused"]:
    if any(part.type == "refusal" for part in parts):
        return "refused"
    if response.status == "completed":
        return "complete"
    reason = response.incomplete_details and response.incomplete_details.reason
    return "refused" if reason == "content_filter" else "truncated"


def _usage(usage: _Usage) -> Usage:
    """OpenAI's totals include cached, newly cached and reasoning tokens, as ours do."""
    read = usage.input_tokens_details or _InputDetails()
    written = usage.output_tokens_details or _OutputDetails()
    return Usage(
        tokens_in=usage.input_tokens,
        tokens_cached=read.cached_tokens,
        tokens_cache_written=read.cache_write_tokens,
        tokens_out=usage.output_tokens,
        tokens_reasoning=written.reasoning_tokens,
    )
