import asyncio
import logging

import pytest
import structlog
from click.testing import CliRunner

from core.cli import main
from core.commands.client import open_api
from tests.scripted_server import ScriptedServer


@pytest.fixture(autouse=True)
def kept_logging(monkeypatch):
    """Commands configure the logs of the whole process; everything is put back."""
    root, before = logging.getLogger(), structlog.get_config()
    level = root.level
    monkeypatch.setattr(root, "handlers", [])
    yield
    structlog.configure(**before)
    root.setLevel(level)


@pytest.fixture
async def server():
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
async def api(server):
    async with open_api(server.url, "token") as api:
        yield api


@pytest.fixture
def oslira(server, tmp_path):
    """A function: run a command against the scripted server, as somebody who has a token."""

    async def run(*arguments, given=None, **environ):
        environ = {"OSLIRA_DATA_DIR": str(tmp_path), "OSLIRA_TOKEN": "osl_live_x", **environ}
        words = [*arguments, "--url", server.url]
        return await asyncio.to_thread(CliRunner().invoke, main, words, input=given, env=environ)

    return run


@pytest.fixture
def locally(server, tmp_path):
    """A function: the same on one's own machine, where nobody has a token."""

    async def run(*arguments, **environ):
        port = server.url.rpartition(":")[2]
        environ = {"OSLIRA_DATA_DIR": str(tmp_path), "OSLIRA_PORT": port, **environ}
        return await asyncio.to_thread(CliRunner().invoke, main, arguments, env=environ)

    return run
