"""Stripe's own client, connected to the simulator, and a webhook endpoint for its events."""

import pytest
import stripe

from tests.integration.simulators.stripe.shop import Shop
from tests.support.scripted_server import ScriptedServer, http


class Transport(stripe.HTTPXClient):
    """Passes the body as content, because httpx warns of the client's own way, and warnings are errors."""

    def _get_request_args_kwargs(self, *arguments):
        place, options = super()._get_request_args_kwargs(*arguments)
        return place, {**options, "data": None, "content": options["data"] or b""}


@pytest.fixture(scope="session")
async def stripe_client(simulator_process):
    transport = Transport(timeout=10)
    yield stripe.StripeClient(
        "sk_test_simulated",
        base_addresses={"api": f"{simulator_process.address}/stripe"},
        http_client=transport,
        max_network_retries=0,
    ).v1
    await transport.close_async()


@pytest.fixture
async def shop(simulators, stripe_client):
    """Two plans, a pack and a customer."""
    return await Shop(simulators, stripe_client).opened()


@pytest.fixture
async def listener(shop):
    """A webhook endpoint that accepts every event."""
    async with ScriptedServer() as server:
        server.script(http(200))
        await shop.client.webhook_endpoints.create_async({"url": server.url, "enabled_events": ["*"]})
        yield server
