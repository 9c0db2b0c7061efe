import json
import uuid

import pytest

from infrastructure.ai.cloudflare import BASE, CloudflareGateway
from infrastructure.ai.providers.anthropic import AnthropicModels
from infrastructure.ai.providers.openai import OpenAIModels
from infrastructure.ai.providers.openai_embeddings import OpenAIEmbeddings
from shared.llm import CostOwner, Usage
from tests.integration.ai.calls import ACCOUNT_ID, KEY, at, request
from tests.integration.ai.test_wire import answer, read
from tests.support.scripted_server import http

RUN_ID = uuid.UUID(int=7)
RECORDED = {OpenAIModels: "openai/response_cached", AnthropicModels: "anthropic/message_cached"}
MODELS = pytest.mark.parametrize("kind", list(RECORDED))


@pytest.fixture
def gateway(server):
    return CloudflareGateway("acc", "gate", "token", 3_600, f"{server.url}/v1")


@pytest.fixture
async def through(server, gateway):
    """Returns a function that sends a request through the gateway with the given adapter."""
    made = []

    async def ask(kind, *, url="", headers=None, gateway=gateway, **changes):
        recorded = read(RECORDED[kind])
        server.script(http(recorded["status"], recorded["body"], **(headers or {})))
        made.append(kind(at(url), gateway))
        return await made[-1].complete(request(**changes), deadline_s=10)

    yield ask
    for models in made:
        await models.close()


def test_gateway_url_has_the_documented_form():
    gateway = CloudflareGateway("acc", "gate", "", 0)

    assert gateway.url("openai") == f"{BASE}/acc/gate/openai"


@pytest.mark.parametrize(
    ("kind", "path"), [(OpenAIModels, "/openai/responses"), (AnthropicModels, "/anthropic/v1/messages")]
)
async def test_prompt_has_a_cache_entry_per_tenant(through, server, kind, path):
    await through(kind, owner=CostOwner(account_id=ACCOUNT_ID, run_id=RUN_ID), completion_key="5f2c")

    asked = server.asked[0]
    sent = {name: value for name, value in asked.headers.items() if name.startswith("cf-aig")}
    assert (asked.path, asked.headers["authorization"]) == (f"/v1/acc/gate{path}", f"Bearer {KEY}")
    assert json.loads(sent.pop("cf-aig-metadata")) == {
        "account": str(ACCOUNT_ID),
        "run": str(RUN_ID),
        "task": "light",
    }
    assert sent == {
        "cf-aig-authorization": "Bearer token",
        "cf-aig-cache-ttl": "3600",
        "cf-aig-cache-key": "5f2c",
    }


@MODELS
@pytest.mark.parametrize(
    "changes", [{"is_fresh": True}, {"malformed_completion": "{", "validation_error": "not JSON"}]
)
async def test_fresh_or_repair_request_skips_the_cache(through, server, kind, changes):
    await through(kind, **changes)

    headers = server.asked[0].headers
    assert headers["cf-aig-skip-cache"] == "true"
    assert "cf-aig-cache-key" not in headers


async def test_zero_ttl_skips_the_cache_and_empty_token_is_not_sent(through, server):
    await through(OpenAIModels, gateway=CloudflareGateway("a", "g", "", 0, f"{server.url}/v1"))

    headers = server.asked[0].headers
    assert headers["cf-aig-skip-cache"] == "true"
    assert not {"cf-aig-authorization", "cf-aig-cache-ttl", "cf-aig-cache-key"} & headers.keys()


async def test_metadata_header_is_escaped(through, server):
    await through(OpenAIModels, owner=CostOwner(), task="Prüfung\r\nx: y")

    assert json.loads(server.asked[0].headers["cf-aig-metadata"]) == {"task": "Prüfung\r\nx: y"}


@MODELS
async def test_cached_completion_has_no_usage(through, kind):
    reply = await through(kind, headers={"cf-aig-cache-status": "HIT", "cf-aig-log-id": "01J"})

    assert (reply.is_from_gateway, reply.gateway_log_id, reply.usage) == (True, "01J", Usage())
    assert reply.text == "Done."


@MODELS
async def test_cache_miss_has_the_reported_usage(through, kind):
    reply = await through(kind, headers={"cf-aig-cache-status": "MISS", "cf-aig-log-id": "01J"})

    assert (reply.is_from_gateway, reply.gateway_log_id) == (False, "01J")
    assert reply.usage.tokens_in > 2_000


@MODELS
async def test_configured_url_bypasses_the_gateway_and_its_headers(through, server, kind):
    reply = await through(
        kind, url=server.url, headers={"cf-aig-cache-status": "HIT", "cf-aig-log-id": "01J"}
    )

    assert (reply.is_from_gateway, reply.gateway_log_id) == (False, None)
    assert reply.usage.tokens_in > 2_000
    assert not [name for name in server.asked[0].headers if name.startswith("cf-aig")]


async def test_embeddings_use_the_gateway_and_skip_its_cache(server, gateway):
    server.script(answer(read("openai/embeddings")))
    embeddings = OpenAIEmbeddings(at(""), gateway)

    await embeddings.embed(("a",), model="m", dimensions=None, deadline_s=10)

    asked = server.asked[0]
    assert asked.path == "/v1/acc/gate/openai/embeddings"
    assert asked.headers["cf-aig-skip-cache"] == "true"
    await embeddings.close()
