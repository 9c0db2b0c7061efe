"""The providers' official clients, connected to the simulators."""

import anthropic
import openai
import pytest
from apify_client import ApifyClientAsync


@pytest.fixture(scope="session")
async def openai_client(simulator_process):
    async with openai.AsyncOpenAI(
        api_key="key",
        base_url=f"{simulator_process.address}/openai/v1",
        max_retries=0,
        timeout=10,
        _strict_response_validation=True,
    ) as client:
        yield client


@pytest.fixture(scope="session")
def lenient_openai_client(openai_client):
    """Without strict validation, which does not support that the client requests base64 vectors."""
    return openai_client.with_options()


@pytest.fixture(scope="session")
async def anthropic_client(simulator_process):
    async with anthropic.AsyncAnthropic(
        api_key="key",
        base_url=f"{simulator_process.address}/anthropic",
        max_retries=0,
        timeout=10,
        _strict_response_validation=True,
    ) as client:
        yield client


@pytest.fixture(scope="session")
def apify(simulator_process):
    return ApifyClientAsync("token", api_url=f"{simulator_process.address}/apify", max_retries=0)


@pytest.fixture
def closed():
    """A function: properties to a closed schema, as structured output requires it."""

    def build(**properties):
        required = list(properties)
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    return build
