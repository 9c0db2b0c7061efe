"""Faults, as seen by a client that reads raw bytes."""

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
    """A function that calls one provider, and the route of the call."""
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
    """A function: sends one request on one connection and returns all response bytes and how it ended."""
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


async def test_every_response_is_marked_as_simulated(call):
    answer = await call()

    assert answer.status_code in {200, 201}
    expected = {"embeddings": "openai"}.get(call.provider, call.provider)
    assert answer.headers["x-oslira-simulator"] == expected


@pytest.mark.parametrize("kind", ["status", "html", "empty", "error_in_200", "truncated", "duplicate"])
async def test_each_fault_happens_once_and_is_counted(simulators, call, kind):
    usual = await call()
    await simulators.fault(call.route, kind, status=503 if kind == "status" else None)

    wrong, right = await call(), await call()

    assert wrong.content != usual.content
    assert right.status_code == usual.status_code
    assert wrong.headers["x-oslira-simulator"] == right.headers["x-oslira-simulator"]
    assert {503, 502, 200, 201} >= {wrong.status_code}


@pytest.mark.parametrize("seconds", ["3", "Wed, 21 Oct 2099 07:28:00 GMT", "86400", None], ids=str)
async def test_too_many_requests_with_any_retry_after(simulators, ask, seconds):
    headers = {"Retry-After": seconds} if seconds else {}
    await simulators.fault(ROUTE, status=429, code="rate_limit_exceeded", headers=headers)

    answer = await ask()

    assert (answer.status_code, answer.headers.get("retry-after")) == (429, seconds)
    assert answer.json()["error"]["code"] == "rate_limit_exceeded"


async def test_reset_happens_before_the_first_byte(simulators, raw):
    await simulators.fault(ROUTE, "reset")

    first, second = await raw(), await raw()

    assert first == (b"", "reset", None)
    assert second[1] == "whole"


async def test_only_the_requests_own_reused_connection_is_reset(simulators, raw):
    _, _, connection = await raw()
    _, _, bystander = await raw()
    await simulators.fault(ROUTE, "reset")

    assert await raw(connection) == (b"", "reset", None)
    assert (await raw(bystander))[1] == "whole"


async def test_reset_midway_comes_after_half_of_the_response(simulators, raw):
    whole, _, _ = await raw()
    await simulators.fault(ROUTE, "reset_midway")

    found, end, _ = await raw()

    assert end == "reset"
    assert found.startswith(b"HTTP/1.1 200 OK")
    assert len(whole) // 4 < len(found) < len(whole)


def test_search_for_the_connection_leaves_no_descriptor_open():
    before = sorted(DESCRIPTORS.iterdir())

    reset_connection({"client": ("192.0.2.1", 1)})

    assert sorted(DESCRIPTORS.iterdir()) == before


async def test_timeout_never_responds(simulators, ask):
    await simulators.fault(ROUTE, "timeout")

    with pytest.raises(httpx.ReadTimeout):
        await ask(timeout=0.3)
    assert (await ask()).status_code == 200


async def test_request_is_in_flight_until_its_client_disconnects(simulators, ask):
    async def under_way():
        return (await simulators.state())["in_flight"].get(f"POST {ROUTE}", 0)

    async def is_over():
        return await under_way() == 0

    await simulators.fault(ROUTE, "timeout")
    asking = asyncio.create_task(ask(timeout=60))
    assert await until(under_way) == 1
    asking.cancel()

    assert await until(is_over)


async def test_drip_is_the_correct_response_one_byte_at_a_time(simulators):
    route, asked = "/openai/v1/embeddings", {"model": "text-embedding-3-small", "input": "x", "dimensions": 2}
    await simulators.fault(route, "drip", interval_ms=0.1)

    async with simulators.http.stream("POST", route, json=asked, headers=HEADERS) as answer:
        parts = [part async for part in answer.aiter_raw()]

    assert len(json.loads(b"".join(parts))["data"][0]["embedding"]) == 2
    assert len(parts) > 50


async def test_slow_drip_ends_only_when_the_client_disconnects(simulators):
    await simulators.fault(ROUTE, "drip", interval_ms=200)
    started = time.monotonic()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await simulators.http.post(ROUTE, json=QUESTION, headers=HEADERS)

    assert time.monotonic() - started < 5


async def test_truncated_response_has_half_of_the_document(simulators, ask):
    await simulators.fault(ROUTE, "truncated")

    answer = await ask()

    assert (answer.status_code, int(answer.headers["content-length"])) == (200, len(answer.content))
    with pytest.raises(json.JSONDecodeError):
        answer.json()


async def test_response_of_the_wrong_schema_is_well_formed(simulators, openai_client, anthropic_client):
    for route in ("/openai", "/anthropic"):
        await simulators.fault(route, "wrong_schema")
    tool = {"name": "t", "input_schema": {"type": "object", "properties": {}}}

    response = await openai_client.responses.create(**QUESTION)
    message = await anthropic_client.messages.create(
        **CALLS["anthropic"][2], tools=[tool], tool_choice={"type": "tool", "name": "t"}
    )

    assert json.loads(response.output_text) == {"unexpected": [True, None]}
    assert message.content[0].input == {"unexpected": [True, None]}


async def test_refusal_has_the_providers_own_format(simulators, openai_client, anthropic_client):
    for route in ("/openai", "/anthropic"):
        await simulators.fault(route, "refusal")

    response = await openai_client.responses.create(**QUESTION)
    message = await anthropic_client.messages.create(**CALLS["anthropic"][2])

    assert (response.output[-1].content[0].type, response.output_text) == ("refusal", "")
    assert (message.stop_reason, message.stop_details.type, message.content) == ("refusal", "refusal", [])


async def test_duplicate_fault_returns_items_twice(simulators, apify, lenient_openai_client):
    await simulators.fault("/apify/v2/datasets", "duplicate")
    await simulators.fault("/openai/v1/embeddings", "duplicate")
    run = await apify.actor("apify/instagram-profile-scraper").start(
        run_input={"usernames": ["ada"]}, wait_for_finish=10
    )

    items = (await apify.dataset(run.default_dataset_id).list_items()).items
    vectors = await lenient_openai_client.embeddings.create(model="text-embedding-3-small", input="x")

    assert (len(items), items[0] == items[1], len(vectors.data)) == (2, True, 2)


async def test_error_with_a_success_status_has_the_providers_format(simulators, ask):
    await simulators.fault(ROUTE, "error_in_200")

    answer = await ask()

    assert (answer.status_code, answer.json()["error"]["code"]) == (200, "server_error")


async def test_exactly_the_requested_number_of_concurrent_requests_fails(simulators, ask):
    await simulators.fault(ROUTE, status=500, times=7)

    answers = await asyncio.gather(*(ask() for _ in range(30)))

    assert [answer.status_code for answer in answers].count(500) == 7
    assert await simulators.asked(f"POST {ROUTE}") == 30


async def test_fault_applies_to_a_prefix_and_a_method_until_removed(simulators, ask):
    await simulators.fault("/openai", status=503, method="POST", times=None)
    failing = [(await ask()).status_code for _ in range(3)]
    listed = (await simulators.http.get("/openai/v1/models", headers=HEADERS)).status_code
    await simulators.fault("/openai", status=503, method="POST", times=0)

    assert (failing, listed, (await ask()).status_code) == ([503] * 3, 200, 200)


async def test_longest_route_applies(simulators, ask):
    await simulators.fault("/openai", status=500)
    await simulators.fault(ROUTE, status=429)

    assert [(await ask()).status_code for _ in range(3)] == [429, 500, 200]


async def test_all_faults_are_removed_at_once(simulators, ask):
    await simulators.fault("/", status=500, times=None)
    await ask()
    await simulators.reset()

    assert (await simulators.state())["requests"] == {}
    assert (await ask()).status_code == 200
