"""SDK clients: lazy creation, replacement, closing, and no secrets in errors or logs."""

import asyncio
import logging
import traceback
import warnings

import pytest

from infrastructure.ai.cloudflare import CloudflareGateway
from infrastructure.ai.providers.anthropic import AnthropicModels
from infrastructure.ai.providers.base import ProviderError
from infrastructure.ai.providers.openai import OpenAIModels
from infrastructure.ai.providers.openai_embeddings import OpenAIEmbeddings
from infrastructure.provider_endpoint import ProviderEndpoint
from tests.integration.ai.calls import KEY, at, request
from tests.integration.ai.test_faults import HALF, LONG, provider_error
from tests.integration.ai.test_wire import answer, read
from tests.support import until
from tests.support.scripted_server import http, stall

PROMPT = "canary-in-the-prompt"
MODELS = pytest.mark.parametrize("kind", [OpenAIModels, AnthropicModels])


def fine(kind):
    return answer(read("openai/response_text" if kind is OpenAIModels else "anthropic/message_text"))


@MODELS
async def test_client_is_not_created_before_the_first_call(server, kind):
    def never():
        raise AssertionError

    models = kind(never)

    await models.close()
    assert server.opened_count == 0


@MODELS
async def test_rotated_key_applies_to_the_next_call_and_spares_calls_in_progress(server, kind):
    keys, proceed = ["first"], asyncio.Event()

    async def where():
        return ProviderEndpoint(server.url, keys[-1])

    async def after_release(*_):
        await proceed.wait()

    server.script((after_release, fine(kind)), fine(kind))
    models = kind(where)
    under_way = asyncio.create_task(models.complete(request(), deadline_s=10))
    await until(lambda: server.asked)

    keys.append("second")
    await models.complete(request(), deadline_s=10)
    proceed.set()

    assert (await under_way).end == "complete"
    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer first", "Bearer second"]
    await until(lambda: server.open_count == 1)  # the old client is closed, the new one keeps its connection
    await models.close()
    await until(lambda: server.open_count == 0)


@MODELS
async def test_client_is_reused_while_the_endpoint_is_unchanged(server, kind):
    server.script(fine(kind))
    models = kind(at(server.url))

    for _ in range(3):
        await models.complete(request(), deadline_s=10)

    assert server.opened_count == 1
    await models.close()


@pytest.mark.parametrize("key", ["", "käy", "two\nlines", "nul\0"])
async def test_invalid_key_is_rejected_without_a_request(server, call, key):
    call.where = at(server.url, key=key)

    error = await provider_error(call)

    assert (error.kind, error.was_sent, server.opened_count) == ("unauthorised", False, 0)


async def test_failing_endpoint_resolver_sends_nothing(call):
    async def lost():
        raise RuntimeError(KEY)

    call.where = lost

    error = await provider_error(call)

    assert (error.kind, error.was_sent, error.detail) == ("unavailable", False, "RuntimeError")


async def test_deadline_includes_the_endpoint_resolver(call):
    async def for_ever():
        await asyncio.Event().wait()

    call.where = for_ever

    error = await provider_error(call, deadline_s=0.01)

    assert (error.kind, error.was_sent) == ("timeout", False)


async def test_lone_surrogate_is_rejected_without_a_request(server, call):
    error = await provider_error(call, user_message="\ud83d")

    assert (error.kind, error.was_sent, server.opened_count) == ("invalid", False, 0)


async def test_prepare_never_fails(server):
    asked = []

    async def where():
        asked.append(1)
        return ProviderEndpoint(server.url, KEY if len(asked) > 1 else "")

    models = OpenAIModels(where)

    await models.prepare()
    await models.prepare()

    assert (len(asked), server.opened_count) == (2, 0)
    await models.close()


async def test_deprecated_model_causes_no_warning(server):
    server.script(fine(AnthropicModels))
    models = AnthropicModels(at(server.url))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reply = await models.complete(
            request(model="claude-sonnet-4-5", output_tokens_max=64_000), deadline_s=10
        )

    assert reply.end == "complete"
    await models.close()


QUOTING = {"message": f"Incorrect key {KEY}; you asked {PROMPT}", "type": "invalid_request_error"}
SPEAKING = {
    "quoted in an error": http(401, {"error": QUOTING | {"code": f"{KEY} {PROMPT}"}}),
    "quoted in plain text": http(400, f"{KEY} {PROMPT}".encode()),
    "quoted in an answer": http(200, {"error": QUOTING}),
    "quoted in half an answer": http(200, f'{{"object": "{KEY} {PROMPT}'.encode()),
    "cut off": (LONG + HALF, stall),
}


@pytest.mark.parametrize("case", SPEAKING)
async def test_errors_and_logs_contain_neither_key_nor_prompt(server, call, caplog, case):
    for name in ("openai", "anthropic", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.NOTSET)  # as in a debugging session
    caplog.set_level(logging.DEBUG)
    await call.adapter.prepare()
    server.script(SPEAKING[case])

    error = await provider_error(call, user_message=PROMPT, deadline_s=0.6 if case == "cut off" else 5)

    said = [repr(error), str(error), repr(vars(error)), caplog.text, repr(vars(call.adapter))]
    said += traceback.format_exception(error)
    assert PROMPT.encode() in server.asked[0].body
    assert not [text for text in said if KEY in text or PROMPT in text]
    assert (error.__cause__, error.__context__) == (None, None)


def test_repr_of_gateway_hides_its_token():
    gateway = CloudflareGateway("acc", "gate", KEY, 60)

    assert KEY not in repr(gateway) + repr(vars(OpenAIEmbeddings(at("http://x"), None)))


async def test_traceback_of_provider_error_contains_no_sdk_frames(server, call):
    server.script(http(500))

    with pytest.raises(ProviderError) as raised:
        await call()

    frames = [frame.filename for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert not [name for name in frames if "site-packages" in name]
