"""Responses in the providers' documented formats (see ``source`` in each file), not the simulator's:
validated against the SDKs' types, then parsed by the adapters.
"""

import base64
import json
from array import array
from pathlib import Path

import pytest
from anthropic.types import Message
from anthropic.types.shared import ErrorResponse
from openai import AsyncOpenAI
from openai.types import CreateEmbeddingResponse
from openai.types.responses import Response
from openai.types.shared import ErrorObject

from infrastructure.ai.providers.base import ProviderError
from shared.llm import Usage
from tests.integration.ai.calls import KEY, request
from tests.support.scripted_server import http

WIRE = Path(__file__).parent / "wire"
NAMES = sorted(str(path.relative_to(WIRE).with_suffix("")) for path in WIRE.glob("*/*.json"))


def read(name):
    return json.loads((WIRE / f"{name}.json").read_text())


def answer(recorded):
    return http(recorded["status"], recorded["body"], **recorded.get("headers", {}))


@pytest.mark.parametrize("name", NAMES)
def test_recorded_response_matches_the_sdk_type(name):
    recorded = read(name)
    body, (provider, kind) = recorded["body"], name.split("/")
    if kind.startswith("error"):
        checked = ErrorObject if provider == "openai" else ErrorResponse
        body = body["error"] if provider == "openai" else body
    else:
        checked = {"response": Response, "message": Message, "embeddings": CreateEmbeddingResponse}[
            kind.split("_")[0]
        ]

    assert checked.model_validate(body, strict=True)
    assert recorded["source"]


REPLIES = {
    "openai/response_text": (
        "The image depicts a scenic landscape with a wooden boardwalk.",
        "complete",
        Usage(tokens_in=328, tokens_out=52),
    ),
    "openai/response_reasoning": (
        "The classic tongue twister has no agreed answer.",
        "complete",
        Usage(tokens_in=81, tokens_out=1035, tokens_reasoning=832),
    ),
    "openai/response_cached": (
        "Done.",
        "complete",
        Usage(tokens_in=2006, tokens_cached=1920, tokens_cache_written=64, tokens_out=300),
    ),
    "openai/response_phases": ('{"answer":"final"}', "complete", Usage(tokens_in=17, tokens_out=13)),
    "openai/response_refusal": ("", "refused", Usage(tokens_in=81, tokens_out=11)),
    "openai/response_incomplete_length": (
        '{"answer": "In a peacef',
        "truncated",
        Usage(tokens_in=37, tokens_out=16),
    ),
    "openai/response_incomplete_filter": ("", "refused", Usage(tokens_in=37)),
    "anthropic/message_text": (
        "Hi! My name is Claude.",
        "complete",
        Usage(tokens_in=2095, tokens_out=503),
    ),
    "anthropic/message_structured": (
        '{"product_name": "Green Tea", "price": 5.50, "quantity": 2}',
        "complete",
        Usage(tokens_in=249, tokens_out=26),
    ),
    "anthropic/message_tool": ('{"ticker": "^GSPC"}', "complete", Usage(tokens_in=472, tokens_out=89)),
    "anthropic/message_thinking": (
        "Based on my analysis...",
        "complete",
        Usage(tokens_in=74, tokens_out=420, tokens_reasoning=301),
    ),
    "anthropic/message_cached": (
        "Done.",
        "complete",
        Usage(tokens_in=2098, tokens_cached=1800, tokens_cache_written=248, tokens_out=503),
    ),
    "anthropic/message_refusal": ("Hello..", "refused", Usage(tokens_in=564, tokens_out=22)),
    "anthropic/message_length": ('{"value":', "truncated", Usage(tokens_in=1, tokens_out=1)),
}

# Error, whether it may have been processed, Retry-After, detail.
TROUBLES = {
    "openai/response_failed": ("unavailable", True, None, "failed server_error"),
    "openai/response_failed_limit": ("rate_limited", True, None, "failed rate_limit_exceeded"),
    "openai/error_rate_limit": ("rate_limited", False, 20.0, "429 rate_limit_exceeded"),
    "openai/error_quota": ("unauthorised", False, None, "429 insufficient_quota"),
    "openai/error_key": ("unauthorised", False, None, "401 invalid_api_key"),
    "openai/error_model": ("unknown_model", False, None, "404 model_not_found"),
    "openai/error_model_400": ("unknown_model", False, None, "400 model_not_found"),
    "openai/error_context": ("invalid", False, None, "400 context_length_exceeded"),
    "openai/error_server": ("unavailable", True, None, "500 server_error"),
    "openai/error_overloaded": ("unavailable", False, None, "503 service_unavailable"),
    "anthropic/message_window": ("invalid", True, None, "200 context_window_exceeded"),
    "anthropic/error_overloaded": ("unavailable", False, None, "529 overloaded_error"),
    "anthropic/error_rate_limit": ("rate_limited", False, 12.0, "429 rate_limit_error"),
    "anthropic/error_spend_limit": ("unauthorised", False, None, "429 enforced_spend_limit_reached"),
    "anthropic/error_key": ("unauthorised", False, None, "401 authentication_error"),
    "anthropic/error_billing": ("unauthorised", False, None, "402 billing_error"),
    "anthropic/error_permission": ("unauthorised", False, None, "403 permission_error"),
    "anthropic/error_model": ("unknown_model", False, None, "404 not_found_error"),
    "anthropic/error_invalid": ("invalid", False, None, "400 invalid_request_error"),
    "anthropic/error_server": ("unavailable", True, None, "500 api_error"),
}


def test_every_recorded_response_is_used():
    assert sorted({*REPLIES, *TROUBLES, "openai/embeddings"}) == NAMES


@pytest.fixture
def asking(server, openai, anthropic):
    """Returns a function that replays a recorded response to the adapter."""

    async def ask(name):
        server.script(answer(read(name)))
        models = openai if name.startswith("openai/") else anthropic
        return await models.complete(request(), deadline_s=5)

    return ask


@pytest.mark.parametrize("name", REPLIES)
async def test_responses_are_parsed(asking, name):
    reply = await asking(name)

    assert (reply.text, reply.end, reply.usage) == REPLIES[name]
    assert reply.model == read(name)["body"]["model"]


@pytest.mark.parametrize("name", TROUBLES)
async def test_error_responses_are_classified(asking, name):
    with pytest.raises(ProviderError) as raised:
        await asking(name)

    error = raised.value
    assert (error.kind, error.was_sent, error.retry_after_s, error.detail) == TROUBLES[name]


@pytest.fixture
def in_base64():
    recorded = read("openai/embeddings")["body"]
    vectors = [[0.5, -1.25, 3.0], recorded["data"][0]["embedding"]]
    texts = [base64.b64encode(array("f", vector).tobytes()).decode() for vector in vectors]
    data = [{"object": "embedding", "index": index, "embedding": text} for index, text in enumerate(texts)]
    return recorded | {"data": data[::-1]}


async def test_base64_embeddings_equal_the_sdk_result(server, embeddings, in_base64):
    server.script(http(200, in_base64))
    async with AsyncOpenAI(api_key=KEY, base_url=server.url) as sdk:
        read_by_sdk = await sdk.embeddings.create(input=["a", "b"], model="m")

    reply = await embeddings.embed(("a", "b"), model="m", dimensions=None, deadline_s=5)

    assert reply.vectors == tuple(tuple(item.embedding) for item in reversed(read_by_sdk.data))
    assert reply.vectors[0] == (0.5, -1.25, 3.0)
    assert (reply.usage, reply.model) == (Usage(tokens_in=8), "text-embedding-ada-002")


async def test_embeddings_as_plain_numbers_are_parsed(server, embeddings):
    server.script(answer(read("openai/embeddings")))

    reply = await embeddings.embed(("a",), model="m", dimensions=3, deadline_s=5)

    assert reply.vectors == ((0.0023064255, -0.009327292, -0.0028842222),)
