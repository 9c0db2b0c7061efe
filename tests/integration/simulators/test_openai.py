"""Simulated OpenAI API, called by OpenAI's own client."""

import json
import math

import openai
import pytest
from openai.types import CreateEmbeddingResponse, Model
from openai.types.responses import Response

from simulators.ai.completions import Completions
from simulators.ai.embeddings import embed

pytestmark = pytest.mark.usefixtures("simulators")

STABLE = "We sell strength training programmes to people over forty. " * 100
SCORE = {"type": "integer", "minimum": 0, "maximum": 100}


@pytest.fixture
def ask(openai_client, closed):
    """A function: additional parameters to the client's response."""

    async def ask(question="followers: 12,345", *, schema=None, **options):
        shape = {
            "type": "json_schema",
            "name": "a",
            "strict": True,
            "schema": schema or closed(score=SCORE),
        }
        usual = {"model": "gpt-5-mini", "instructions": STABLE, "text": {"format": shape}}
        return await openai_client.responses.create(input=question, **{**usual, **options})

    return ask


async def test_a_response_has_every_field_that_the_clients_types_require(ask):
    response = await ask()

    assert Response.model_validate(response.to_dict()) == response
    assert (response.status, response.model, response.error) == ("completed", "gpt-5-mini", None)
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert response.usage.input_tokens > len(STABLE) // 4


async def test_text_has_the_requested_schema(ask, closed):
    schema = closed(
        followers_count={"type": "integer"},
        verdict={"type": "string", "enum": ["low", "high"]},
        reasons={"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 4},
        note={"anyOf": [{"type": "string"}, {"type": "null"}]},
    )

    value = json.loads((await ask(schema=schema)).output_text)

    # Computed in another process than the one that responded.
    assert value == Completions([STABLE], "followers: 12,345").value(schema)
    assert value["followers_count"] == 12345
    assert value["verdict"] in {"low", "high"}
    assert 2 <= len(value["reasons"]) <= 4


async def test_text_without_a_schema_is_a_sentence(ask):
    response = await ask(text={"format": {"type": "text"}})

    assert response.output_text.count(".") >= 3


async def test_repeated_prefix_is_reported_as_cached(ask):
    first = await ask("one")
    second = await ask("two")
    other = await ask("two", prompt_cache_key="another")
    cached = [response.usage.input_tokens_details.cached_tokens for response in (first, second, other)]

    assert cached[0] == cached[2] == 0
    assert 1_024 <= cached[1] <= second.usage.input_tokens
    assert cached[1] % 128 == 0


async def test_a_short_prompt_is_never_cached(ask):
    used = [await ask("hello", instructions="Be brief.") for _ in range(2)]

    assert [response.usage.input_tokens_details.cached_tokens for response in used] == [0, 0]


async def test_more_effort_uses_more_reasoning_tokens(ask):
    used = [await ask(reasoning={"effort": effort}) for effort in ("minimal", "low", "medium", "high")]
    tokens = [response.usage.output_tokens_details.reasoning_tokens for response in used]

    assert tokens == sorted(tokens)
    assert (tokens[0], len(set(tokens))) == (0, 4)


async def test_too_long_completion_is_cut_and_reports_it(ask):
    response = await ask(max_output_tokens=2, reasoning={"effort": "minimal"})

    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert response.usage.output_tokens <= 2


@pytest.mark.parametrize(
    ("options", "status", "code", "param"),
    [
        ({"model": "gpt-2"}, 404, "model_not_found", None),
        ({"temperature": 0.2}, 400, "unsupported_parameter", "temperature"),
        ({"model": "gpt-5", "top_p": 0.2}, 400, "unsupported_parameter", "top_p"),
        (
            {"model": "gpt-4o-mini", "reasoning": {"effort": "low"}},
            400,
            "unsupported_parameter",
            "reasoning.effort",
        ),
        ({"reasoning": {"effort": "enormous"}}, 400, "unsupported_value", "reasoning.effort"),
        (
            {"schema": {"type": "object", "properties": {}}},
            400,
            "invalid_json_schema",
            "text.format.schema",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
async def test_parameters_that_a_model_does_not_accept_are_rejected(ask, options, status, code, param):
    with pytest.raises(openai.APIStatusError) as refusal:
        await ask(**options)

    found = refusal.value
    assert (found.status_code, found.code, found.param) == (status, code, param)


async def test_schema_with_a_nested_optional_property_is_rejected(ask, closed):
    inner = {**closed(a=SCORE, b=SCORE), "required": ["a"]}

    with pytest.raises(openai.BadRequestError, match="Missing 'b'"):
        await ask(schema=closed(list={"type": "array", "items": inner}))


async def test_small_model_accepts_a_temperature(ask):
    assert (await ask(model="gpt-4o-mini", temperature=0.2)).temperature == 0.2


async def test_call_without_a_key_is_rejected(simulators):
    answer = await simulators.http.post("/openai/v1/responses", json={"model": "gpt-5", "input": "x"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")


async def test_body_that_is_not_json_is_rejected_in_openais_format(simulators):
    headers = {"Authorization": "Bearer key"}
    answer = await simulators.http.post("/openai/v1/responses", content=b"{", headers=headers)

    assert (answer.status_code, set(answer.json()["error"])) == (400, {"message", "type", "param", "code"})


async def test_models_are_listed(openai_client):
    models = [model async for model in openai_client.models.list()]

    assert all(isinstance(model, Model) for model in models)
    assert {"gpt-5", "gpt-5-mini", "gpt-4o-mini", "text-embedding-3-small"} <= {model.id for model in models}


@pytest.mark.parametrize(
    ("model", "options", "length"),
    [
        ("text-embedding-3-small", {}, 1_536),
        ("text-embedding-3-large", {}, 3_072),
        ("text-embedding-3-small", {"dimensions": 256}, 256),
        ("text-embedding-3-small", {"dimensions": 256, "encoding_format": "float"}, 256),
    ],
)
async def test_embeddings_have_the_requested_length(lenient_openai_client, model, options, length):
    found = await lenient_openai_client.embeddings.create(
        model=model, input=["strength", "sourdough"], **options
    )

    assert CreateEmbeddingResponse.model_validate(found.to_dict()) == found
    assert [len(one.embedding) for one in found.data] == [length, length]
    assert math.isclose(math.hypot(*found.data[0].embedding), 1, rel_tol=1e-5)
    assert found.usage.prompt_tokens > 0


async def test_both_encodings_are_the_same_vector(openai_client, lenient_openai_client):
    ask = {"model": "text-embedding-3-small", "input": "strength training"}

    packed = (await lenient_openai_client.embeddings.create(**ask)).data[0].embedding
    plain = (await openai_client.embeddings.create(**ask, encoding_format="float")).data[0].embedding

    assert plain == pytest.approx(embed(ask["input"], 1_536))
    assert packed == pytest.approx(plain, abs=1e-6)


@pytest.mark.parametrize(
    "options", [{"input": []}, {"input": ""}, {"input": "x", "dimensions": 5_000}], ids=str
)
async def test_invalid_embedding_input_is_rejected(openai_client, options):
    with pytest.raises(openai.BadRequestError):
        await openai_client.embeddings.create(model="text-embedding-3-small", **options)
