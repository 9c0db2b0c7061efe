"""Anthropic models via the Messages API."""

from typing import Any

import msgspec

from infrastructure.ai.cloudflare import CloudflareGateway
from infrastructure.ai.providers.anthropic_messages import reply_of
from infrastructure.ai.providers.base import ModelProvider, ModelReply, ModelRequest
from infrastructure.ai.providers.clients import Clients, SdkClient
from infrastructure.ai.structured.json_schema import Remembered, Schema, for_anthropic
from infrastructure.ai.structured.messages import encoded, pseudonym, stable_parts, turns
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint

PATH = "/v1/messages"
REMEMBERED = {"cache_control": {"type": "ephemeral"}}


class AnthropicModels(ModelProvider):
    name = "anthropic"

    def __init__(self, where: EndpointResolver, gateway: CloudflareGateway | None = None) -> None:
        self._gateway = gateway
        self._clients = Clients(where, gateway, provider=self.name, make=_make_client)

    async def ask(self, request: ModelRequest, *, deadline_s: float) -> ModelReply:
        headers = self._gateway.headers(request) if self._gateway else {}
        received = await self._clients.post(
            PATH, encoded(_body(request)), gateway_headers=headers, deadline_s=deadline_s
        )
        return reply_of(received)

    async def prepare(self) -> None:
        await self._clients.prepare()

    async def close(self) -> None:
        await self._clients.close()


def _make_client(url: str, access: ProviderEndpoint) -> SdkClient:
    from infrastructure.ai.providers.anthropic_sdk import AnthropicClient  # noqa: PLC0415  slow import

    return AnthropicClient(url, access)


def _body(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.output_tokens_max,
        "messages": turns(request),
    }
    if system := [{"type": "text", "text": part} for part in stable_parts(request)]:
        body["system"] = [*system[:-1], system[-1] | REMEMBERED]
    if request.spender.account_id is not None:
        body["metadata"] = {"user_id": pseudonym(str(request.spender.account_id))}
    body |= _form(request)
    if request.effort in request.capabilities.efforts:
        body["output_config"] = body.get("output_config", {}) | {"effort": request.effort}
    return body


def _form(request: ModelRequest) -> dict[str, Any]:
    suited, plain = _SUITED(request.schema)
    if request.capabilities.structured_output and suited is not None:
        return {"output_config": {"format": {"type": "json_schema", "schema": suited}}}
    # The model is forced to call a tool whose input schema is the response schema.
    name = request.schema_name
    return {
        "tools": [{"name": name, "description": "Takes your answer.", "input_schema": plain}],
        "tool_choice": {"type": "tool", "name": name, "disable_parallel_tool_use": True},
    }


def _suited(schema: Schema) -> tuple[msgspec.Raw | None, msgspec.Raw]:
    suited = for_anthropic(schema)
    return (
        msgspec.Raw(msgspec.json.encode(suited)) if suited is not None else None,
        msgspec.Raw(msgspec.json.encode(schema)),
    )


_SUITED = Remembered(_suited)
