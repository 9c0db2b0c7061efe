"""The application without any provider key: everything works and is marked as simulated."""

from datetime import timedelta
from uuid import uuid4

import httpx
import pytest

from core.app import create_app
from core.wiring.application import build
from core.wiring.bootstrap import local_issuer, read_runtime
from shared.llm import CostOwner, StructuredPrompt
from tests.system.providers.world import LIGHT, Verdict

PROVIDERS = ("openai", "anthropic", "apify", "scraperapi")


@pytest.fixture(scope="module")
async def local(addresses, tmp_path_factory):
    environ = {
        "OSLIRA_ENVIRONMENT": "local",
        "DATABASE_URL": addresses.owner,
        "OSLIRA_DATA_DIR": str(tmp_path_factory.mktemp("local")),
        "OSLIRA_SIMULATED_LATENCY": "0",
    }
    async with build(read_runtime(environ)) as application:
        yield application


@pytest.fixture
def cost_owner(account_id):
    return CostOwner(account_id=account_id, run_id=uuid4())


async def test_completions_and_their_rows_are_marked_simulated(local, cost_owner, owner):
    prompt = StructuredPrompt(
        task=LIGHT,
        cached_prefix=("You judge.",),
        user_message="Who?",
        output_type=Verdict,
        cost_owner=cost_owner,
    )

    answers = [await local.resources.providers.gateway.complete(prompt) for _ in range(2)]
    texts = await local.resources.providers.gateway.embed(["a loom"], cost_owner)

    rows = await owner.fetch("select * from ai_usage_logs where run_id = $1", cost_owner.run_id)
    assert [(answer.cache, answer.is_simulated) for answer in answers] == [("none", True), ("exact", True)]
    assert texts.is_simulated
    assert [row["is_simulated"] for row in rows] == [True] * 3


async def test_profiles_and_their_rows_are_marked_simulated(local, cost_owner, owner):
    reads = [
        await local.resources.providers.profiles.read("ada.lovely", "deep", cost_owner=cost_owner)
        for _ in range(2)
    ]

    rows = await owner.fetch("select * from scrape_logs where run_id = $1", cost_owner.run_id)
    assert [(read.is_cached, read.is_simulated) for read in reads] == [(False, True), (True, True)]
    assert [row["is_simulated"] for row in rows] == [True] * 2


async def test_readiness_names_simulated_providers_and_their_keys(local):
    token = local_issuer(local.settings).token("o@example.com", lifetime=timedelta(hours=1), is_operator=True)
    transport = httpx.ASGITransport(create_app(local), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        page = (await client.get("/health/ready", headers={"Authorization": f"Bearer {token}"})).json()

    for provider in PROVIDERS:
        binding = page["bindings"][provider]
        assert (binding["ok"], binding["mode"]) == (True, "simulated"), provider
        assert "to use the real provider" in binding["detail"], provider
