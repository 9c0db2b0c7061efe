"""OpenAI embeddings."""

import sys
from array import array
from base64 import b64decode
from typing import Any, Literal

import msgspec

from infrastructure.ai.cloudflare import CloudflareGateway
from infrastructure.ai.providers.base import EmbeddingProvider, EmbeddingReply, encode_body
from infrastructure.ai.providers.clients import Clients, Received
from infrastructure.ai.providers.errors import decode_response, malformed_response
from infrastructure.ai.providers.openai import Count, openai_client
from infrastructure.provider_endpoint import EndpointResolver
from shared.llm import Usage

PATH = "/embeddings"


class _Embedding(msgspec.Struct):
    index: int
    embedding: str | tuple[float, ...]  # we request base64, but compatible servers may send numbers


class _Usage(msgspec.Struct):
    prompt_tokens: Count


class _Embeddings(msgspec.Struct):
    object: Literal["list"]
    data: list[_Embedding]
    model: str
    usage: _Usage


_EMBEDDINGS = msgspec.json.Decoder(_Embeddings)


class OpenAIEmbeddings(EmbeddingProvider):
    name = "openai"

    def __init__(self, resolve_endpoint: EndpointResolver, gateway: CloudflareGateway | None = None) -> None:
        # Always bypasses the gateway's cache: the tenant is not known here.
        self._headers = gateway.plain_headers() if gateway else {}
        self._clients = Clients(resolve_endpoint, gateway, provider=self.name, make=openai_client)

    async def embed(
        self, texts: tuple[str, ...], *, model: str, dimensions: int | None, deadline_s: float
    ) -> EmbeddingReply:
        body: dict[str, Any] = {"model": model, "input": texts, "encoding_format": "base64"}
        if dimensions is not None:
            body["dimensions"] = dimensions
        received = await self._clients.post(
            PATH, encode_body(body), gateway_headers=self._headers, deadline_s=deadline_s
        )
        return _reply(received, texts_count=len(texts), dimensions=dimensions)

    async def prepare(self) -> None:
        await self._clients.prepare()

    async def close(self) -> None:
        await self._clients.close()


def _reply(received: Received, *, texts_count: int, dimensions: int | None) -> EmbeddingReply:
    found = decode_response(received.body, _EMBEDDINGS, is_simulated=received.is_simulated)
    by_index = {item.index: _vector(item.embedding) for item in found.data}
    vectors = tuple(by_index.get(index, ()) for index in range(texts_count))
    sizes = {len(vector) for vector in vectors}
    is_as_requested = len(sizes) == 1 and 0 not in sizes and (dimensions is None or dimensions in sizes)
    if len(found.data) != texts_count or not is_as_requested:
        raise malformed_response("200", is_simulated=received.is_simulated)
    return EmbeddingReply(
        vectors=vectors,
        usage=Usage(tokens_in=found.usage.prompt_tokens),
        model=found.model,
        is_simulated=received.is_simulated,
    )


def _vector(embedding: str | tuple[float, ...]) -> tuple[float, ...]:
    """Empty if the base64 is invalid."""
    if not isinstance(embedding, str):
        return embedding
    floats = array("f")
    try:
        floats.frombytes(b64decode(embedding, validate=True))
    except ValueError:
        return ()
    if sys.byteorder == "big":
        floats.byteswap()  # OpenAI sends little-endian floats
    return tuple(floats)
