"""OpenAI models via the Responses API. Only the response fields that we read are declared."""

from typing import Annotated, Any, Literal

import msgspec

from infrastructure.ai.cloudflare import CloudflareGateway
from infrastructure.ai.providers.base import (
    ErrorKind,
    ModelProvider,
    ModelReply,
    ModelRequest,
    ProviderError,
    encode_body,
    pseudonym,
)
from infrastructure.ai.providers.clients import Clients, Received, SdkClient
from infrastructure.ai.providers.errors import decode_response, malformed_response, readable_code
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint
from shared.llm import Usage

PATH = "/responses"
PREFIX_KEY_LENGTH_MAX = 64

Count = Annotated[int, msgspec.Meta(ge=0)]

_FAILURES: dict[str, ErrorKind] = {
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


class OpenAIModels(ModelProvider):
    name = "openai"

    def __init__(self, resolve_endpoint: EndpointResolver, gateway: CloudflareGateway | None = None) -> None:
        self._gateway = gateway
        self._clients = Clients(resolve_endpoint, gateway, provider=self.name, make=openai_client)

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


def openai_client(url: str, endpoint: ProviderEndpoint) -> SdkClient:
    from infrastructure.ai.providers.sdk_clients import new_openai_client  # noqa: PLC0415  slow import

    return new_openai_client(url, endpoint)


def _body(request: ModelRequest) -> dict[str, Any]:
    schema, is_strict = request.response_format.openai
    response_format = {
        "type": "json_schema",
        "name": request.response_format.name,
        "schema": schema,
        "strict": is_strict,
    }
    body: dict[str, Any] = {
        "model": request.model,
        "input": [{"role": "developer", "content": part} for part in request.prefix_parts] + request.messages,
        "text": {"format": response_format},
        "max_output_tokens": request.output_tokens_max,
        "prompt_cache_key": _short(request.prefix_key),
        "store": False,
    }
    if request.effort is not None:
        body["reasoning"] = {"effort": request.effort}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.tenant_pseudonym is not None:
        body["safety_identifier"] = request.tenant_pseudonym
    return body


def _short(prefix_key: str) -> str:
    return prefix_key if len(prefix_key) <= PREFIX_KEY_LENGTH_MAX else pseudonym(prefix_key)


def _reply(received: Received) -> ModelReply:
    """Raises ProviderError when the response contains no completion."""
    response = decode_response(received.body, _RESPONSE, is_simulated=received.is_simulated)
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
        for part in decode_response(bytes(item.content), _PARTS, is_simulated=is_simulated) or ()
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
