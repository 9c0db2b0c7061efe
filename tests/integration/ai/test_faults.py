"""Faults of connections and responses: classified correctly, in time, without open connections."""

import asyncio
import socket
from contextlib import ExitStack
from itertools import count

import pytest

from infrastructure.ai.providers.base import ProviderError
from tests.integration.ai.calls import at, request
from tests.integration.ai.test_wire import read
from tests.support import free_port, until
from tests.support.scripted_server import drip, hang_up, http, reset, stall

HTML = b"<html><body><h1>Bad gateway</h1></body></html>"
HALF = b'{"object": "response", "status": "compl'
LONG = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n"
SHORT_S = 0.2

# The server's behaviour, the expected error, whether it may have been processed. The client must not reuse
# such a connection.
BROKEN = {
    "hangs up": (hang_up, "connection", True),
    "resets": (reset, "connection", True),
    "resets in the middle": ((LONG + HALF, reset), "connection", True),
    "hangs up in the middle": ((LONG + HALF, hang_up), "connection", True),
    "does not speak HTTP": ((b"SSH-2.0-OpenSSH_9.6\r\n", hang_up), "connection", True),
    "stalls": (stall, "timeout", True),
    "stalls in the head": ((b"HTTP/1.1 200 OK\r\n", stall), "timeout", True),
    "stalls in the body": ((LONG + HALF, stall), "timeout", True),
    "drips": (drip(LONG + HALF), "timeout", True),
}
SPOKEN = {
    "429": (http(429), "rate_limited", False),
    "429 HTML": (http(429, HTML, content_type="text/html"), "rate_limited", False),
    "500": (http(500), "unavailable", True),
    "502 HTML": (http(502, HTML, content_type="text/html"), "unavailable", True),
    "503": (http(503), "unavailable", False),
    "504": (http(504), "unavailable", True),
    "522": (http(522), "unavailable", True),
    "529": (http(529), "unavailable", False),
    "408": (http(408), "unavailable", True),
    "409": (http(409), "unavailable", False),
    "401": (http(401), "unauthorised", False),
    "403": (http(403), "unauthorised", False),
    "404 HTML": (http(404, HTML, content_type="text/html"), "malformed_response", False),
    "400": (http(400), "invalid", False),
    "413": (http(413), "invalid", False),
    "422": (http(422), "invalid", False),
    "418": (http(418), "malformed_response", True),
    "302": (http(302, location="http://127.0.0.1:9/elsewhere"), "malformed_response", True),
    "empty": (http(200), "malformed_response", True),
    "204": (http(204), "malformed_response", True),
    "HTML": (http(200, HTML, content_type="text/html"), "malformed_response", True),
    "half of it": (http(200, HALF), "malformed_response", True),
    "another form": (http(200, {"choices": []}), "malformed_response", True),
    "a list": (http(200, b"[]"), "malformed_response", True),
    "null": (http(200, b"null"), "malformed_response", True),
    "not UTF-8": (http(200, b'{"a": "\xff\xfe"}'), "malformed_response", True),
    "too deep": (http(200, b"[" * 100_000), "malformed_response", True),
    "an error": (http(200, {"error": {"code": "server_error", "message": "x"}}), "malformed_response", True),
    "an error of theirs": (
        http(200, {"type": "error", "error": {"type": "api_error"}}),
        "malformed_response",
        True,
    ),
}


async def provider_error(call, **options):
    with pytest.raises(ProviderError) as raised:
        await call(**options)
    return raised.value


@pytest.mark.parametrize("fault", BROKEN)
async def test_broken_connection_is_reported_in_time_and_closed(server, call, fault):
    answer, expected, was_sent = BROKEN[fault]
    server.script(http(500), answer)
    await provider_error(call)  # connects first, so that the short deadline below covers the response only
    started = asyncio.get_running_loop().time()

    error = await provider_error(call, deadline_s=SHORT_S if expected == "timeout" else 5.0)

    assert (error.kind, error.was_sent, error.is_simulated) == (expected, was_sent, True)
    assert asyncio.get_running_loop().time() - started < 3.0
    await until(lambda: server.open_count == 0, timeout_s=5)
    assert len(server.asked) == 2


@pytest.mark.parametrize("fault", SPOKEN)
async def test_invalid_response_is_classified(server, call, fault):
    answer, expected, was_sent = SPOKEN[fault]
    server.script(answer)

    error = await provider_error(call)

    assert (error.kind, error.was_sent, error.is_simulated) == (expected, was_sent, True)
    assert len(server.asked) == 1  # the adapter makes one attempt
    await call.adapter.close()
    await until(lambda: server.open_count == 0, timeout_s=5)


@pytest.mark.parametrize("retry_after", ["7", "7.0"])
async def test_retry_after_is_passed_on(server, call, retry_after):
    server.script(http(429, retry_after=retry_after), http(503, retry_after=retry_after))

    assert [(await provider_error(call)).retry_after_s for _ in range(2)] == [7.0, 7.0]


@pytest.fixture
def call_to(call):
    """Returns a function that creates the call for a URL."""

    def elsewhere(url):
        call.where = at(url)
        return call

    return elsewhere


async def test_refused_connection_counts_as_not_sent(call_to):
    error = await provider_error(call_to(f"http://127.0.0.1:{free_port()}"))

    assert (error.kind, error.was_sent) == ("connection", False)


async def test_connect_timeout_counts_as_not_sent(call_to):
    with ExitStack() as sockets:
        listening = sockets.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):  # fills the backlog, so that further connections hang
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())

        call = call_to(f"http://127.0.0.1:{listening.getsockname()[1]}")
        await call.adapter.prepare()  # creates the client, so that the deadline covers connecting only
        error = await provider_error(call, deadline_s=1)

    assert (error.kind, error.was_sent, error.detail) == ("timeout", False, "ConnectTimeout")


@pytest.mark.parametrize("url", ["http://no-such-host.invalid", "ftp://127.0.0.1", "http://[", "nonsense"])
async def test_invalid_url_counts_as_not_sent(call_to, url):
    error = await provider_error(call_to(url))

    assert (error.kind in {"connection", "unavailable"}, error.was_sent) == (True, False)


async def test_cancelled_call_closes_the_connection(server, call):
    server.script((LONG + HALF, stall))
    asking = asyncio.create_task(call())
    await until(lambda: server.asked)

    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    await until(lambda: server.open_count == 0, timeout_s=5)


async def test_call_after_a_broken_one_succeeds(server, call):
    server.script(http(503), (LONG + HALF, stall), http(500))

    error = [await provider_error(call, deadline_s=deadline_s) for deadline_s in (5, SHORT_S, 5)]

    assert [each.detail for each in error] == ["503", "deadline", "500"]


async def test_thirty_concurrent_calls_reuse_their_connections(server, call):
    all_callers = asyncio.Barrier(30)

    async def when_all_are_there(*_):
        await all_callers.wait()

    server.script((when_all_are_there, http(500)))
    for _ in range(2):
        await asyncio.gather(*(provider_error(call, deadline_s=20) for _ in range(30)))

    assert (len(server.asked), server.opened_count) == (60, 30)


@pytest.mark.parametrize(
    "data",
    [
        [],
        [{"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}],
        [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}],
        [{"index": index, "embedding": "not base64!"} for index in range(2)],
        [{"index": index, "embedding": "AAAA"} for index in range(2)],
        [{"index": index, "embedding": [1.0]} for index in range(3)],
    ],
    ids=count(),
)
async def test_wrong_number_of_vectors_is_malformed_response(server, embeddings, data):
    server.script(http(200, {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 2}}))

    with pytest.raises(ProviderError) as raised:
        await embeddings.embed(("a", "b"), model="m", dimensions=None, deadline_s=5)

    assert raised.value.kind == "malformed_response"


async def test_vectors_of_wrong_size_are_malformed_response(server, embeddings):
    data = [{"index": 0, "embedding": [1.0, 2.0]}]
    server.script(http(200, {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 2}}))

    with pytest.raises(ProviderError):
        await embeddings.embed(("a",), model="m", dimensions=3, deadline_s=5)


@pytest.mark.parametrize("usage", [None, {"input_tokens": 1}, {"input_tokens": -1, "output_tokens": 1}])
@pytest.mark.parametrize("status", ["completed", "incomplete"])
async def test_response_without_usage_is_malformed_response(server, openai, usage, status):
    body = {"object": "response", "status": status, "model": "m", "output": [], "usage": usage}
    server.script(http(200, body))

    with pytest.raises(ProviderError) as raised:
        await openai.complete(request(), deadline_s=5)

    assert raised.value.kind == "malformed_response"


@pytest.mark.parametrize("status", ["queued", "in_progress", "cancelled"])
async def test_unfinished_response_is_malformed_response(server, openai, status):
    body = read("openai/response_text")["body"] | {"status": status}
    server.script(http(200, body))

    with pytest.raises(ProviderError) as raised:
        await openai.complete(request(), deadline_s=5)

    assert raised.value.kind == "malformed_response"
