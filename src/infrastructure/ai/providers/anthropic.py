"""Anthropic models via the Messages API. Only the response fields that we read are declared."""

from typing import Annotated, Any, Literal

import msgspec

from infrastructure.ai.cloudflare import CloudflareGateway
from infrastructure.ai.providers.base import (
    ModelProvider,
    ModelReply,
    ModelRequest,
    ProviderError,
    encode_body,
)
from infrastructure.ai.providers.clients import Clients, Received, SdkClient
from infrastructure.ai.providers.errors import decode_response
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint
from shared.llm import Usage

PATH = "/v1/messages"
CACHED = {"cache_control": {"type": "ephemeral"}}

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


class AnthropicModels(ModelProvider):
    name = "anthropic"

    def __init__(self, resolve_endpoint: EndpointResolver, gateway: CloudflareGateway | None = None) -> None:
        self._gateway = gateway
        self._clients = Clients(resolve_endpoint, gateway, provider=self.name, make=_client)

    async def complete(self, request: ModelRequest, *, deadline_s: float) -> ModelReply:
        headers = self._gateway.headers(request) if self._gateway else {}
        received = await self._clients.post(
            PATH, encode_body(_body(request)), gateway_headers=headers, deadline_s=deadline_s
        )
        return _reply(received)

    async def prepare(self) -> None:
        await self._clients.prepare()

    async def close(self) -> None:
        await self._clients.close()


def _client(url: str, endpoint: ProviderEndpoint) -> SdkClient:
    from infrastructure.ai.providers.sdk_clients import new_anthropic_client  # noqa: PLC0415  slow import

    return new_anthropic_client(url, endpoint)


def _body(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.output_tokens_max,
        "messages": request.messages,
    }
    if system := [{"type": "text", "text": part} for part in request.prefix_parts]:
        body["system"] = [*system[:-1], system[-1] | CACHED]
    if request.tenant_pseudonym is not None:
        body["metadata"] = {"user_id": request.tenant_pseudonym}
    body |= _format(request)
    if request.effort is not None:
        body["output_config"] = body.get("output_config", {}) | {"effort": request.effort}
    return body


def _format(request: ModelRequest) -> dict[str, Any]:
    response_format, name = request.response_format, request.response_format.name
    if response_format.anthropic is not None:
        return {"output_config": {"format": {"type": "json_schema", "schema": response_format.anthropic}}}
    # The schema is not supported as an output format, so the model is forced to call a tool with this input.
    tool = {
        "name": name,
        "description": "Takes your response.",
        "input_schema": request.response_format.schema,
    }
    return {
        "tools": [tool],
        "tool_choice": {"type": "tool", "name": name, "disable_parallel_tool_use": True},
    }


def _reply(received: Received) -> ModelReply:
    """Raises ProviderError when the response contains no completion."""
    message = decode_response(received.body, _MESSAGE, is_simulated=received.is_simulated)
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
    tool_inputs = [bytes(block.input).decode() for block in message.content if block.type == "tool_use"]
    texts = [block.text for block in message.content if block.type == "text" and isinstance(block.text, str)]
    return "".join(tool_inputs or texts)


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
