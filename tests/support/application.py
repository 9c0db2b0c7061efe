"""Fixtures of tests that run the application: operators, servers, rate limits and captured logs."""

import asyncio
import logging
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import asyncpg
import httpx
import pytest
import structlog
from structlog.testing import capture_logs

from core.app import create_app
from core.wiring.application import build
from core.wiring.bootstrap import read_runtime
from tests.conftest import PROJECT, client_for, copy_of
from tests.support import answers, free_port, register_worker, until


@pytest.fixture
def logs():
    """Captured log entries as data."""
    with capture_logs() as logs:
        yield logs


@pytest.fixture
def kept_logging(monkeypatch):
    """Restores the logging configuration, which commands change for the whole process."""
    root, before = logging.getLogger(), structlog.get_config()
    level = root.level
    monkeypatch.setattr(root, "handlers", [])
    yield
    structlog.configure(**before)
    root.setLevel(level)


@pytest.fixture(scope="session")
async def stripe_control(application):
    """Client of the simulator's control API: payments, declined cards and passing time at Stripe."""
    address = await application.resources.simulators.address()
    async with httpx.AsyncClient(base_url=f"{address}/_stripe", timeout=30) as http:
        yield http


@pytest.fixture
def operator(bearer):
    return bearer("operator@example.com", is_operator=True)


@pytest.fixture
async def account_id(client, bearer):
    return (await client.get("/v1/credits/balance", headers=bearer())).json()["account_id"]


@pytest.fixture
def post(client, operator, account_id):
    """Sends a raw body to one of the credit administration routes."""

    async def send(noun, content, content_type="application/json"):
        url = f"/v1/admin/accounts/{account_id}/credits/{noun}"
        headers = {**operator, "Content-Type": content_type}
        return await client.post(url, headers=headers, content=content)

    return send


@pytest.fixture
async def client_of():
    """Creates a client of an application that a test has changed."""
    clients = []

    def make(application):
        clients.append(client_for(application))
        return clients[-1]

    yield make
    for client in clients:
        await client.aclose()


@asynccontextmanager
async def servers(addresses, place):
    """Yields a function that starts `oslira api`, or another serving command, and waits until it responds."""
    processes = []

    async def start(command="api", *, port=None, **environment):
        port = port or free_port()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "core.cli.main", command, "--port", str(port)),
            env={
                **os.environ,
                "PYTHONPATH": str(PROJECT / "src"),
                "OSLIRA_ENVIRONMENT": "local",
                "DATABASE_URL": addresses.owner,
                "OSLIRA_DATA_DIR": str(place.settings.data_dir),
                **environment,
            },
            stderr=asyncio.subprocess.PIPE,
        )
        processes.append(process)
        await until(lambda: answers(port) or process.returncode is not None, timeout_s=120)
        return process, port

    try:
        yield start
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
            await process.communicate()


@pytest.fixture
async def start(addresses, place):
    """Starts servers that are stopped after the test."""
    async with servers(addresses, place) as start:
        yield start


async def set_limit(addresses, route_class, requests_max, *, plan="free", window_s=3_600):
    connection = await asyncpg.connect(addresses.owner)
    await connection.execute(
        "update rate_limits set requests_max = $3, window_s = $4 where plan = $1 and route_class = $2",
        *(plan, route_class, requests_max, window_s),
    )
    await connection.close()


@pytest.fixture(scope="session")
async def counting_addresses(cluster, template):
    """Database for tests of rate limits, with a copy of the default limits."""
    async with copy_of(cluster, template) as addresses:
        connection = await asyncpg.connect(addresses.owner)
        await register_worker(connection)
        await connection.execute("create table oslira.delivered_limits as table rate_limits")
        await connection.close()
        yield addresses


@pytest.fixture
async def limited_addresses(counting_addresses):
    """The database with default limits and no counted requests."""
    connection = await asyncpg.connect(counting_addresses.owner)
    await connection.execute(
        "delete from traffic.rate_windows; delete from rate_limits;"
        " insert into rate_limits select * from oslira.delivered_limits"
    )
    await connection.close()
    return counting_addresses


@pytest.fixture
async def limit(limited_addresses):
    """Sets a limit, for the free plan by default."""
    return partial(set_limit, limited_addresses)


@pytest.fixture
async def open_client(limited_addresses, place):
    """Creates a client of a new application that calls from a given IP address."""
    async with AsyncExitStack() as stack:

        async def make(peer="198.51.100.1", **environ):
            settings = {
                "OSLIRA_ENVIRONMENT": "local",
                "DATABASE_URL": limited_addresses.owner,
                "OSLIRA_DATA_DIR": str(place.settings.data_dir),
                **environ,
            }
            application = await stack.enter_async_context(build(read_runtime(settings)))
            transport = httpx.ASGITransport(
                create_app(application), raise_app_exceptions=False, client=(peer, 1)
            )
            return await stack.enter_async_context(
                httpx.AsyncClient(transport=transport, base_url="http://test")
            )

        yield make
