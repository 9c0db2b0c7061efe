"""Models through Cloudflare's AI gateway, whose cache is separate per tenant."""

import msgspec
import pytest

from infrastructure.ai.cloudflare import CloudflareGateway
from infrastructure.provider_endpoint import ProviderEndpoint
from shared.llm import CostOwner, ModelsUnavailable, Usage
from tests.system.providers.faults import set_fault
from tests.system.providers.world import ANTHROPIC, EMBEDDINGS, OPENAI

SEEN = {"openai": OPENAI, "anthropic": ANTHROPIC}


def real(_provider):
    """Endpoints as in production, with a key and the default URL."""

    async def where():
        return ProviderEndpoint("", "key", is_simulated=True)

    return where


@pytest.fixture
def through_cloudflare(outside):
    """Returns a function that creates a gateway behind Cloudflare, without our own completion cache."""

    def make(token=""):
        base = f"{outside.simulators.address}/cloudflare/v1"
        front = CloudflareGateway("account", "oslira", token, cache_ttl_s=3_600, base=base)
        return outside.gateway(front=front, where=real, remembers=False)

    return make


@pytest.mark.parametrize("provider", SEEN)
async def test_repeated_prompt_of_a_tenant_is_served_from_its_cache(
    outside, through_cloudflare, model_rows, other_tenant, provider
):
    if provider == "anthropic":
        await set_fault(outside.simulators, "openai", "/openai", "503")
    gateway, prompt = through_cloudflare(), outside.prompt()
    other = CostOwner(account_id=other_tenant.account_id, run_id=outside.cost_owner.run_id)

    first = await gateway.complete(prompt)
    second = await gateway.complete(prompt)
    others = await gateway.complete(msgspec.structs.replace(prompt, cost_owner=other))

    answers = (first, second, others)
    assert [(answer.provider, answer.cache) for answer in answers] == [
        (provider, cache) for cache in ("none", "gateway", "none")
    ]
    assert (second.value, second.usage, second.cost_nanodollars) == (first.value, Usage(), 0)
    assert await outside.asked(SEEN[provider]) == [2]
    calls = [call for call in (await outside.simulators.state())["gateway"] if call["provider"] == provider]
    assert [call["cache"] for call in calls] == ["MISS", "HIT", "MISS"]
    rows = [row for row in await model_rows() if row["provider"] == provider]
    assert [(row["cache"], row["cost_nanodollars"] == 0) for row in rows] == [
        (cache, cache == "gateway") for cache in ("none", "gateway", "none")
    ]
    assert [row["gateway_log_id"] for row in rows] == [call["log_id"] for call in calls]


async def test_requests_carry_account_run_and_task_metadata(outside, through_cloudflare):
    await through_cloudflare().complete(outside.prompt())

    (call,) = (await outside.simulators.state())["gateway"]
    cost_owner = outside.cost_owner
    assert call["gateway"] == "account/oslira"
    assert call["metadata"] == {
        "account": str(cost_owner.account_id),
        "run": str(cost_owner.run_id),
        "task": "analysis.light",
    }


async def test_fresh_prompt_bypasses_the_cache(outside, through_cloudflare):
    gateway, prompt = through_cloudflare(), outside.prompt()
    await gateway.complete(prompt)

    answer = await gateway.complete(msgspec.structs.replace(prompt, is_fresh=True))

    assert (answer.cache, await outside.asked(OPENAI)) == ("none", [2])


async def test_repair_of_a_malformed_completion_bypasses_the_cache(outside, through_cloudflare):
    await set_fault(outside.simulators, "openai", "/openai/v1/responses", "wrong_schema", "once")
    gateway = through_cloudflare()

    answer = await gateway.complete(outside.prompt())

    assert (answer.provider, answer.cache, await outside.asked(OPENAI)) == ("openai", "none", [2])


async def test_embeddings_are_not_cached(outside, through_cloudflare):
    gateway = through_cloudflare()

    for _ in range(2):
        await gateway.embed(["a loom"], outside.cost_owner)

    assert await outside.asked(EMBEDDINGS) == [2]


async def test_gateway_token_is_sent(outside, through_cloudflare):
    await outside.simulators.settings(gateway_token="secret")

    assert (await through_cloudflare("secret").complete(outside.prompt())).provider == "openai"
    with pytest.raises(ModelsUnavailable):
        await through_cloudflare("").complete(outside.prompt())


async def test_gateway_outage_raises_models_unavailable(outside, through_cloudflare, model_rows):
    await set_fault(outside.simulators, "openai", "/cloudflare", "503")

    with pytest.raises(ModelsUnavailable):
        await through_cloudflare().complete(outside.prompt())

    assert {row["outcome"] for row in await model_rows()} == {"unavailable"}
