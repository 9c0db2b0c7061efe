"""OpenAI models via the Responses API."""

from typing import Any

import msgspec

from infrastructure.ai.cloudflare import CloudflareGateway
from infrastructure.ai.providers.base import ModelProvider, ModelReply, ModelRequest
from infrastructure.ai.providers.clients import Clients, SdkClient
from infrastructure.ai.providers.openai_responses import reply_of
from infrastructure.ai.structured.json_schema import Remembered, Schema, for_openai
from infrastructure.ai.structured.messages import encoded, pseudonym, stable_parts, turns
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint

PATH = "/responses"
CACHE_KEY_LENGTH_MAX = 64


class OpenAIModels(ModelProvider):
    name = "openai"

    def __init__(self, where: EndpointResolver, gateway: CloudflareGateway | None = None) -> None:
        self._gateway = gateway
        self._clients = Clients(where, gateway, provider=self.name, make=make_client)

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


def make_client(url: str, access: ProviderEndpoint) -> SdkClient:
    from infrastructure.ai.providers.openai_sdk import OpenAIClient  # noqa: PLC0415  slow import

    return OpenAIClient(url, access)


def _body(request: ModelRequest) -> dict[str, Any]:
    told = [] if request.capabilities.structured_output else [_IN_WORDS(request.schema)]
    body: dict[str, Any] = {
        "model": request.model,
        "input": [{"role": "developer", "content": part} for part in stable_parts(request) + told]
        + turns(request),
        "text": {"format": _format(request)},
        "max_output_tokens": request.output_tokens_max,
        "prompt_cache_key": _short(request.cache_key),
        "store": False,
    }
    if request.effort in request.capabilities.efforts:
        body["reasoning"] = {"effort": request.effort}
    if request.capabilities.temperature and request.temperature is not None:
        body["temperature"] = request.temperature
    if request.spender.account_id is not None:
        body["safety_identifier"] = pseudonym(str(request.spender.account_id))
    return body


def _format(request: ModelRequest) -> dict[str, Any]:
    if not request.capabilities.structured_output:
        return {"type": "json_object"}
    schema, is_strict = _SUITED(request.schema)
    return {"type": "json_schema", "name": request.schema_name, "schema": schema, "strict": is_strict}


def _suited(schema: Schema) -> tuple[msgspec.Raw, bool]:
    suited, is_strict = for_openai(schema)
    return msgspec.Raw(msgspec.json.encode(suited)), is_strict


def _in_words(schema: Schema) -> str:
    return f"Answer with one JSON object that fits this JSON Schema: {msgspec.json.encode(schema).decode()}"


_SUITED = Remembered(_suited)
_IN_WORDS = Remembered(_in_words)


def _short(cache_key: str) -> str:
    return cache_key if len(cache_key) <= CACHE_KEY_LENGTH_MAX else pseudonym(cache_key)
