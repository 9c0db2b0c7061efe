"""Bad days, seen by a client that looks at bytes."""

import asyncio
import json
import time
from urllib.parse import urlsplit

import httpx
import pytest

from simulators.faults.tcp_reset import DESCRIPTORS, reset_connection
from tests.support import until

ROUTE = "/openai/v1/responses"
HEADERS = {"Authorization": "Bearer key"}
QUESTION = {"model": "gpt-4o-mini", "input": "hello"}
CALLS = {
    "openai": ("POST", "/openai/v1/responses", QUESTION),
    "embeddings": ("POST", "/openai/v1/embeddings", {"model": "text-embedding-3-small", "input": "x"}),
    "anthropic": (
        "POST",
        "/anthropic/v1/messages",
        {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": [{"role": "user", "content": "x"}]},
    ),
    "apify": ("POST", "/apify/v2/actors/apify~instagram-profile-scraper/runs", {"usernames": ["ada"]}),
    "scraperapi": ("GET", "/scraperapi/?api_key=k&url=https://example.com/a", None),
    "cloudflare": ("POST", "/cloudflare/v1/a/g/openai/responses", QUESTION),
}
ANTHROPIC = {"x-api-key": "key", "anthropic-version": "2023-06-01"}


@pytest.fixture(params=CALLS)
def call(request, simulators):
    """A function: makes one provider's call, and its route."""
    method, path, body = CALLS[request.param]

    async def call():
        headers = ANTHROPIC if request.param == "anthropic" else HEADERS
        return await simulators.http.request(method, path, json=body, headers=headers)

    call.route = path.partition("?")[0].rstrip("/")
    call.provider = request.param
    return call


@pytest.fixture
def ask(simulators):
    async def ask(**options):
        return await simulators.http.post(ROUTE, json=QUESTION, headers=HEADERS, **options)

    return ask


@pytest.fixture
async def raw(simulators):
    """A function: one request on one connection, to every byte of its answer and how it ended."""
    place = urlsplit(simulators.address)
    connections = []

    async def raw(connection=None):
        reader, writer = connection or await asyncio.open_connection(place.hostname, place.port)
        connections.append(writer)
        body = json.dumps(QUESTION).encode()
        lines = (f"POST {ROUTE} HTTP/1.1", "Host: x", "Authorization: Bearer key")
        head = "\r\n".join((*lines, f"Content-Length: {len(body)}", "", ""))
        writer.write(head.encode() + body)
        found = b""
        try:
            async with asyncio.timeout(10):
                while part := await reader.read(65_536):
                    found += part
                    if is_whole(found):
                        return found, "whole", (reader, writer)
        except ConnectionResetError:
            return found, "reset", None
        return found, "closed", None

    yield raw
    for writer in connections:
        writer.close()


def is_whole(answer):
    head, found, body = answer.partition(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    return bool(found) and len(body) == int(length.partition(b":")[2])


async def test_every_answer_says_that_it_is_simulated(call):
    answer = await call()

    assert answer.status_code in {200, 201}
    expected = {"embeddings": "openai"}.get(call.provider, call.provider)
    assert answer.headers["x-oslira-simulator"] == expected


@pytest.mark.parametrize("kind", ["status", "html", "empty", "error_in_200", "truncated", "duplicate"])
async def test_whatever_goes_wrong_goes_wrong_once_and_is_counted(simulators, call, kind):
    usual = await call()
    await simulators.fault(call.route, kind, status=503 if kind == "status" else None)

    wrong, right = await call(), await call()

    assert wrong.content != usual.content
    assert right.status_code == usual.status_code
    assert wrong.headers["x-oslira-simulator"] == right.headers["x-oslira-simulator"]
    assert {503, 502, 200, 201} >= {wrong.status_code}


@pytest.mark.parametrize("seconds", ["3", "Wed, 21 Oct 2099 07:28:00 GMT", "86400", None], ids=str)
async def test_too_many_requests_with_any_advice(simulators, ask, seconds):
    headers = {"Retry-After": seconds} if seconds else {}
    await simulators.fault(ROUTE, status=429, code="rate_limit_exceeded", headers=headers)

    answer = await ask()

    assert (answer.status_code, answer.headers.get("retry-after")) == (429, seconds)
    assert answer.json()["error"]["code"] == "rate_limit_exceeded"


async def test_a_reset_is_a_reset_before_the_first_byte(simulators, raw):
    await simulators.fault(ROUTE, "reset")

    first, second = await raw(), await raw()

    assert first == (b"", "reset", None)
    assert second[1] == "whole"


async def test_a_connection_that_was_used_before_is_reset_too_and_no_other(simulators, raw):
    _, _, connection = await raw()
    _, _, bystander = await raw()
    await simulators.fault(ROUTE, "reset")

    assert await raw(connection) == (b"", "reset", None)
    assert (await raw(bystander))[1] == "whole"


async def test_a_reset_midway_comes_after_half_of_the_answer(simulators, raw):
    whole, _, _ = await raw()
    await simulators.fault(ROUTE, "reset_midway")

    found, end, _ = await raw()

    assert end == "reset"
    assert found.startswith(b"HTTP/1.1 200 OK")
    assert len(whole) // 4 < len(found) < len(whole)


def test_looking_for_the_connection_to_be_reset_leaves_nothing_open():
    before = sorted(DESCRIPTORS.iterdir())

    reset_connection({"client": ("192.0.2.1", 1)})

    assert sorted(DESCRIPTORS.iterdir()) == before


async def test_a_timeout_never_answers(simulators, ask):
    await simulators.fault(ROUTE, "timeout")

    with pytest.raises(httpx.ReadTimeout):
        await ask(timeout=0.3)
    assert (await ask()).status_code == 200


async def test_a_request_is_under_way_until_its_client_leaves(simulators, ask):
    async def under_way():
        return (await simulators.state())["under_way"].get(f"POST {ROUTE}", 0)

    async def is_over():
        return await under_way() == 0

    await simulators.fault(ROUTE, "timeout")
    asking = asyncio.create_task(ask(timeout=60))
    assert await until(under_way) == 1
    asking.cancel()

    assert await until(is_over)


async def test_a_drip_is_the_right_answer_a_byte_at_a_time(simulators):
    route, asked = "/openai/v1/embeddings", {"model": "text-embedding-3-small", "input": "x", "dimensions": 2}
    await simulators.fault(route, "drip", interval_ms=0.1)

    async with simulators.http.stream("POST", route, json=asked, headers=HEADERS) as answer:
        parts = [part async for part in answer.aiter_raw()]

    assert len(json.loads(b"".join(parts))["data"][0]["embedding"]) == 2
    assert len(parts) > 50


async def test_a_slow_drip_is_given_up_by_the_client_alone(simulators):
    await simulators.fault(ROUTE, "drip", interval_ms=200)
    started = time.monotonic()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await simulators.http.post(ROUTE, json=QUESTION, headers=HEADERS)

    assert time.monotonic() - started < 5


async def test_half_a_document_is_a_proper_answer_of_half_the_length(simulators, ask):
    await simulators.fault(ROUTE, "truncated")

    answer = await ask()

    assert (answer.status_code, int(answer.headers["content-length"])) == (200, len(answer.content))
    with pytest.raises(json.JSONDecodeError):
        answer.json()


async def test_a_reply_of_the_wrong_schema_is_well_formed(simulators, openai_client, anthropic_client):
    for route in ("/openai", "/anthropic"):
        await simulators.fault(route, "wrong_schema")
    tool = {"name": "t", "input_schema": {"type": "object", "properties": {}}}

    response = await openai_client.responses.create(**QUESTION)
    message = await anthropic_client.messages.create(
        **CALLS["anthropic"][2], tools=[tool], tool_choice={"type": "tool", "name": "t"}
    )

    assert json.loads(response.output_text) == {"unexpected": [True, None]}
    assert message.content[0].input == {"unexpected": [True, None]}


async def test_a_refusal_is_in_the_providers_own_form(simulators, openai_client, anthropic_client):
    for route in ("/openai", "/anthropic"):
        await simulators.fault(route, "refusal")

    response = await openai_client.responses.create(**QUESTION)
    message = await anthropic_client.messages.create(**CALLS["anthropic"][2])

    assert (response.output[-1].content[0].type, response.output_text) == ("refusal", "")
    assert (message.stop_reason, message.stop_details.type, message.content) == ("refusal", "refusal", [])


async def test_duplicates_are_items_twice(simulators, apify, lenient_openai_client):
    await simulators.fault("/apify/v2/datasets", "duplicate")
    await simulators.fault("/openai/v1/embeddings", "duplicate")
    run = await apify.actor("apify/instagram-profile-scraper").start(
        run_input={"usernames": ["ada"]}, wait_for_finish=10
    )

    items = (await apify.dataset(run.default_dataset_id).list_items()).items
    vectors = await lenient_openai_client.embeddings.create(model="text-embedding-3-small", input="x")

    assert (len(items), items[0] == items[1], len(vectors.data)) == (2, True, 2)


async def test_an_error_under_a_status_of_success_is_the_providers(simulators, ask):
    await simulators.fault(ROUTE, "error_in_200")

    answer = await ask()

    assert (answer.status_code, answer.json()["error"]["code"]) == (200, "server_error")


async def test_of_requests_at_once_exactly_as_many_fail_as_were_asked_for(simulators, ask):
    await simulators.fault(ROUTE, status=500, times=7)

    answers = await asyncio.gather(*(ask() for _ in range(30)))

    assert [answer.status_code for answer in answers].count(500) == 7
    assert await simulators.asked(f"POST {ROUTE}") == 30


async def test_a_fault_is_of_a_beginning_a_method_and_until_taken_back(simulators, ask):
    await simulators.fault("/openai", status=503, method="POST", times=None)
    failing = [(await ask()).status_code for _ in range(3)]
    listed = (await simulators.http.get("/openai/v1/models", headers=HEADERS)).status_code
    await simulators.fault("/openai", status=503, method="POST", times=0)

    assert (failing, listed, (await ask()).status_code) == ([503] * 3, 200, 200)


async def test_the_longest_route_counts(simulators, ask):
    await simulators.fault("/openai", status=500)
    await simulators.fault(ROUTE, status=429)

    assert [(await ask()).status_code for _ in range(3)] == [429, 500, 200]


async def test_everything_is_taken_back_at_once(simulators, ask):
    await simulators.fault("/", status=500, times=None)
    await ask()
    await simulators.reset()

    assert (await simulators.state())["requests"] == {}
    assert (await ask()).status_code == 200
