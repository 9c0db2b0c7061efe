import anthropic as _anthropic  # noqa: F401  slow import, outside the tests' time limits
import openai as _openai  # noqa: F401
import pytest

from infrastructure.ai.providers.anthropic import AnthropicModels
from infrastructure.ai.providers.openai import OpenAIModels
from infrastructure.ai.providers.openai_embeddings import OpenAIEmbeddings
from tests.integration.ai.calls import at, request
from tests.support.scripted_server import ScriptedServer


@pytest.fixture
async def server():
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
async def openai(server):
    models = OpenAIModels(at(server.url))
    yield models
    await models.close()


@pytest.fixture
async def anthropic(server):
    models = AnthropicModels(at(server.url))
    yield models
    await models.close()


@pytest.fixture
async def embeddings(server):
    embeddings = OpenAIEmbeddings(at(server.url))
    yield embeddings
    await embeddings.close()


class Call:
    """Any kind of provider call behind one interface."""

    def __init__(self, kind, where):
        kinds = {"openai": OpenAIModels, "anthropic": AnthropicModels, "embeddings": OpenAIEmbeddings}
        self.kind = kind
        self.where = where  # may be replaced
        self.adapter = kinds[kind](self._where)

    async def _where(self):
        return await self.where()

    async def __call__(self, *, deadline_s=5.0, **changes):
        if self.kind == "embeddings":
            texts = (changes.get("user_message", "a text"),)
            return await self.adapter.embed(texts, model="m", dimensions=None, deadline_s=deadline_s)
        return await self.adapter.complete(request(**changes), deadline_s=deadline_s)


@pytest.fixture(params=["openai", "anthropic", "embeddings"])
async def call(request, server):
    call = Call(request.param, at(server.url, is_simulated=True))
    yield call
    await call.adapter.close()
