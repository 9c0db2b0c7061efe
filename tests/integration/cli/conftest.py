import asyncio

import pytest
from click.testing import CliRunner

from core.cli.client.api_client import open_api
from core.cli.main import main
from tests.support.scripted_server import ScriptedServer


@pytest.fixture(autouse=True)
def captured_logs(logs):
    """Log entries are data in these tests and are not printed."""
    return logs


@pytest.fixture
async def server():
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
async def api(server):
    async with open_api(server.url, "token") as api:
        yield api


@pytest.fixture
def oslira(server, tmp_path, kept_logging):  # noqa: ARG001
    """Runs a command against the scripted server with an API key."""

    async def run(*arguments, given=None, **environ):
        environ = {"OSLIRA_DATA_DIR": str(tmp_path), "OSLIRA_TOKEN": "osl_live_x", **environ}
        words = [*arguments, "--url", server.url]
        return await asyncio.to_thread(CliRunner().invoke, main, words, input=given, env=environ)

    return run


@pytest.fixture
def locally(server, tmp_path, kept_logging):  # noqa: ARG001
    """Runs a command against the scripted server in a local environment, without a token or key."""

    async def run(*arguments, **environ):
        port = server.url.rpartition(":")[2]
        environ = {"OSLIRA_DATA_DIR": str(tmp_path), "OSLIRA_PORT": port, **environ}
        return await asyncio.to_thread(CliRunner().invoke, main, arguments, env=environ)

    return run
