"""Request bodies, validated against the SDKs' parameter types."""

import hashlib
from collections.abc import Iterator
from itertools import product

import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types import EmbeddingCreateParams
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from shared.llm import CostOwner
from tests.integration.ai.calls import ACCOUNT_ID, KEY, request
from tests.integration.ai.test_wire import answer, read

OPENAI = TypeAdapter(ResponseCreateParamsNonStreaming)
ANTHROPIC = TypeAdapter(MessageCreateParamsNonStreaming)
EMBEDDINGS = TypeAdapter(EmbeddingCreateParams)

FLAGS = list(product([None, "low"], [None, 0.3], [False, True]))


def understood(adapter, body):
    """The body after validation by the type, which drops unknown keys at any depth."""
    return _whole(adapter.validate_python(body, strict=True))


def _whole(value):
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list | Iterator) or type(value).__name__ == "ValidatorIterator":
        return [_whole(item) for item in value]
    return value


@pytest.fixture
def sending(server, openai, anthropic):
    """Returns a function that returns the body which the provider's adapter sends."""

    async def send(provider, **changes):
        name = "openai/response_text" if provider == "openai" else "anthropic/message_text"
        server.script(answer(read(name)))
        await (openai if provider == "openai" else anthropic).complete(request(**changes), deadline_s=5)
        return server.asked[0].json

    return send


@pytest.mark.parametrize(("provider", "adapter"), [("openai", OPENAI), ("anthropic", ANTHROPIC)])
async def test_every_combination_matches_the_sdk_types(sending, provider, adapter):
    for effort, temperature, is_repair in FLAGS:
        body = await sending(
            provider,
            effort=effort,
            temperature=temperature,
            **({"malformed_completion": "{", "validation_error": "not JSON"} if is_repair else {}),
        )

        assert understood(adapter, body) == body
        assert ("temperature" in body) == (provider == "openai" and temperature is not None)


def test_unknown_key_is_detected():
    body = {"model": "m", "input": [{"role": "user", "content": "x", "mood": "good"}], "text": {}}

    assert understood(OPENAI, body) != body


async def test_openai_body_starts_with_the_stable_parts(sending):
    body = await sending("openai", malformed_completion="{", validation_error="not JSON")

    assert [(turn["role"], turn["content"]) for turn in body["input"]] == [
        ("developer", "You judge profiles."),
        ("developer", "The business sells looms."),
        ("user", "Who is this?"),
        ("assistant", "{"),
        ("user", "not JSON"),
    ]
    assert (body["store"], body["prompt_cache_key"]) == (False, "tenant-light")
    assert (body["max_output_tokens"], body["text"]["format"]["strict"]) == (900, True)


async def test_claude_body_marks_the_end_of_the_cacheable_prefix(sending):
    body = await sending("anthropic", malformed_completion="{", validation_error="not JSON")

    assert body["system"] == [
        {"type": "text", "text": "You judge profiles."},
        {"type": "text", "text": "The business sells looms.", "cache_control": {"type": "ephemeral"}},
    ]
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_empty_parts_are_not_sent(sending, provider):
    body = await sending(
        provider, cached_prefix=("", " \n"), malformed_completion="", validation_error="it was empty"
    )

    turns = body["input"] if provider == "openai" else body["messages"]
    assert [turn["role"] for turn in turns] == ["user", "user"]
    assert "system" not in body


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_account_is_sent_as_a_pseudonym(sending, server, provider):
    body = await sending(provider)

    pseudonym = body["safety_identifier"] if provider == "openai" else body["metadata"]["user_id"]
    assert pseudonym == hashlib.sha256(str(ACCOUNT_ID).encode()).hexdigest()
    assert str(ACCOUNT_ID).encode() not in server.asked[0].body


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_request_without_account_has_no_pseudonym(sending, provider):
    body = await sending(provider, owner=CostOwner())

    assert not {"safety_identifier", "metadata"} & body.keys()


async def test_long_prefix_key_is_shortened_deterministically(sending):
    first, second, other = [
        (await sending("openai", prefix_key=key))["prompt_cache_key"]
        for key in ("k" * 65, "k" * 65, "l" * 65)
    ]

    assert first == second != other
    assert len(first) <= 64


@pytest.mark.parametrize("dimensions", [None, 3])
async def test_embedding_request_matches_the_sdk_types(server, embeddings, dimensions):
    server.script(answer(read("openai/embeddings")))
    await embeddings.embed(("a text",), model="text-embedding-3-small", dimensions=dimensions, deadline_s=5)

    asked = server.asked[0]
    assert asked.path == "/embeddings"
    assert understood(EMBEDDINGS, asked.json) == asked.json
    assert asked.json.get("dimensions") == dimensions
    assert (asked.json["input"], asked.json["encoding_format"]) == (["a text"], "base64")


@pytest.mark.parametrize(("provider", "path"), [("openai", "/responses"), ("anthropic", "/v1/messages")])
async def test_key_is_sent_in_the_authorization_header(sending, server, provider, path):
    await sending(provider)

    asked = server.asked[0]
    assert (asked.path, asked.headers["authorization"]) == (path, f"Bearer {KEY}")
    assert asked.headers["content-type"] == "application/json"
    assert not [name for name in asked.headers if name.startswith("cf-aig")]
