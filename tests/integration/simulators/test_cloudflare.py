"""Cloudflare's gateway in front of both providers."""

import json

import anthropic
import openai
import pytest

GATEWAY = "/cloudflare/v1/account/gateway"


@pytest.fixture
async def ask(simulators):
    """A function: headers to the raw response, sent by the real client through the gateway."""
    async with openai.AsyncOpenAI(
        api_key="key", base_url=f"{simulators.address}{GATEWAY}/openai", max_retries=0
    ) as client:

        async def ask(question="hello", **headers):
            named = {f"cf-aig-{name.replace('_', '-')}": value for name, value in headers.items()}
            return await client.responses.with_raw_response.create(
                model="gpt-5-mini", input=question, extra_headers=named
            )

        yield ask


async def test_openai_is_reached_without_a_version_in_the_path(ask, simulators):
    answer = await ask()

    assert answer.parse().output_text
    assert answer.headers["cf-aig-cache-status"] == "MISS"
    assert answer.headers["cf-aig-log-id"]
    assert await simulators.asked("POST /openai/v1/responses") == 1


async def test_anthropic_and_embeddings_are_reached_too(simulators):
    async with anthropic.AsyncAnthropic(
        api_key="key", base_url=f"{simulators.address}{GATEWAY}/anthropic", max_retries=0
    ) as client:
        message = await client.messages.create(
            model="claude-haiku-4-5", max_tokens=100, messages=[{"role": "user", "content": "hello"}]
        )
    async with openai.AsyncOpenAI(api_key="key", base_url=f"{simulators.address}{GATEWAY}/openai") as client:
        vectors = await client.embeddings.create(model="text-embedding-3-small", input="hello")

    assert message.content[0].text
    assert len(vectors.data[0].embedding) == 1_536


async def test_cache_responds_on_request(ask, simulators):
    answers = [
        await ask(cache_ttl="60"),
        await ask(cache_ttl="60"),
        await ask("other", cache_ttl="60"),
        await ask(cache_ttl="60", skip_cache="true"),
        await ask(),
    ]

    found = [answer.headers["cf-aig-cache-status"] for answer in answers]
    assert found == ["MISS", "HIT", "MISS", "MISS", "MISS"]
    assert answers[0].parse().id == answers[1].parse().id != answers[3].parse().id
    assert await simulators.asked("POST /openai/v1/responses") == 4


async def test_custom_cache_key_identifies_equal_requests(ask):
    answers = [
        await ask("one", cache_ttl="60", cache_key="k"),
        await ask("two", cache_ttl="60", cache_key="k"),
        await ask("one", cache_ttl="60", cache_key="other"),
    ]

    assert [answer.headers["cf-aig-cache-status"] for answer in answers] == ["MISS", "HIT", "MISS"]


async def test_error_is_not_cached(ask, simulators):
    await simulators.fault("/openai/v1/responses", status=500)
    with pytest.raises(openai.InternalServerError):
        await ask(cache_ttl="60")

    assert (await ask(cache_ttl="60")).headers["cf-aig-cache-status"] == "MISS"


async def test_five_entries_of_metadata_are_stored(ask, simulators):
    entries = {f"name{number}": number for number in range(7)}
    await ask(metadata=json.dumps(entries))
    await ask(metadata="no json")

    first, second = (await simulators.state())["gateway"]
    assert first["metadata"] == {f"name{number}": number for number in range(5)}
    assert (second["metadata"], second["provider"], second["gateway"]) == ({}, "openai", "account/gateway")


async def test_gateway_with_a_token_rejects_calls_without_it(ask, simulators):
    await simulators.settings(gateway_token="token")
    with pytest.raises(openai.AuthenticationError) as refusal:
        await ask(authorization="Bearer wrong")

    assert refusal.value.response.json()["internalCode"] == 2009
    assert (await ask(authorization="Bearer token")).parse().output_text
    assert await simulators.asked("POST /openai/v1/responses") == 1


async def test_gateway_fault_never_reaches_the_provider(ask, simulators):
    await simulators.fault(GATEWAY, kind="refusal")
    await simulators.fault(f"{GATEWAY}/anthropic", status=503)
    declined = (await ask()).parse()
    await simulators.fault(GATEWAY, status=503)
    with pytest.raises(openai.InternalServerError):
        await ask()

    assert declined.output[-1].content[0].type == "refusal"
    assert await simulators.asked("POST /openai/v1/responses") == 1


async def test_unknown_provider_is_rejected(simulators):
    answers = [await simulators.http.post(f"{GATEWAY}{path}") for path in ("/unknown/x", "")]

    assert [answer.status_code for answer in answers] == [400, 400]
