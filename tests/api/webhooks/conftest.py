import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest

from core.wiring.slices.webhooks import delivery_worker
from tests.support.scripted_server import ScriptedServer

ENDPOINTS = "/v1/webhooks/endpoints"
DELIVERIES = "/v1/webhooks/deliveries"


@pytest.fixture
async def receiver():
    async with ScriptedServer() as server:
        yield server


class Tenant:
    """HTTP client of a user with an account."""

    def __init__(self, client, headers):
        self.client, self.headers = client, headers

    async def ask(self, method, url, status=200, **options):
        answer = await self.client.request(
            method, url, headers={**self.headers, **options.pop("headers", {})}, **options
        )
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def add(self, url, **body):
        return await self.ask("POST", ENDPOINTS, 201, json={"url": url, **body})

    async def on(self, endpoint, verb, status=200, **options):
        return await self.ask("POST", f"{ENDPOINTS}/{endpoint['id']}/{verb}", status, **options)

    async def deliveries(self, **query):
        return (await self.ask("GET", DELIVERIES, params=query))["items"]


@pytest.fixture
async def new_tenant(client: httpx.AsyncClient, bearer):
    """Returns a function that creates a tenant."""

    def make():
        return Tenant(client, bearer())

    return make


@pytest.fixture
def tenant(new_tenant):
    return new_tenant()


@asynccontextmanager
async def carrying(resources):
    deliveries = replace(delivery_worker(resources), poll_interval_s=0.02)
    stopping = asyncio.Event()
    attending = asyncio.create_task(deliveries.run(stopping))
    try:
        yield
    finally:
        stopping.set()
        await attending


@pytest.fixture
async def deliveries(application, owner):
    """A running delivery worker; pending deliveries of other tests are failed first."""
    await owner.execute("update webhook_deliveries set status = 'failed' where status = 'pending'")
    async with carrying(application.resources):
        yield
