"""HttpBoundary, driven with single ASGI messages like a server does."""

import asyncio
import json

import msgspec
import pytest

from shared.middleware.http_boundary import HttpBoundary
from shared.middleware.request_body import Limits
from shared.middleware.request_context import context_of
from shared.middleware.request_id import current_request_id
from tests.support import until

JSON = "application/json"


class Application:
    """Reads the whole body like RequestPipeline, records it and responds 200 with its own headers."""

    is_authenticated = True

    def __init__(self):
        self.headers = []
        self.bodies = []
        self.request_ids = []
        self.scopes = []

    async def __call__(self, scope, receive, send):
        self.scopes.append(scope)
        if scope["type"] != "http":
            return
        self.request_ids.append(current_request_id.get())
        body = context_of(scope).body
        if body is not None:
            receive = await body.read(is_authenticated=self.is_authenticated)
        if receive is None:
            return
        self.bodies.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": self.headers})
        await send({"type": "http.response.body", "body": b"ok", "more_body": False})


class Arriving:
    """Messages of a client; after the last one it sends nothing more."""

    def __init__(self, *messages):
        self.messages = list(messages)
        self.taken = 0

    async def __call__(self):
        if not self.messages:
            await asyncio.Event().wait()
        self.taken += 1
        return self.messages.pop(0)


def body_of(*pieces):
    """Return the messages of a body in pieces."""
    return [
        {"type": "http.request", "body": piece, "more_body": number < len(pieces)}
        for number, piece in enumerate(pieces, start=1)
    ]


class Answer(msgspec.Struct):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    messages_before: int  # received before the response began

    def header(self, name):
        """Return the only header with this name; None if it is missing."""
        values = [value.decode() for key, value in self.headers if key == name.encode()]
        assert len(values) <= 1
        return values[0] if values else None

    @property
    def code(self):
        return json.loads(self.body)["code"]


async def ask(edge, *messages, method="POST", path="/", content_type=JSON, receive=None, **headers):
    """Send one request and return the response; None if there was none."""
    headers = {"content-type": content_type, **headers}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [
            (name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()
        ],
    }
    sent, receive = [], receive or Arriving(*messages)

    async def send(message):
        sent.append((message, receive.taken))

    await edge(scope, receive, send)
    if not sent:
        return None
    (start, messages_before), (body, _) = sent
    return Answer(start["status"], start["headers"], body["body"], messages_before)


@pytest.fixture
def application():
    return Application()


@pytest.fixture
def points():
    """The recorded request log entries."""
    return []


@pytest.fixture
def edge(application, points):
    return HttpBoundary(
        application, Limits(body_bytes_max=1_000, body_deadline_s=5), https_only=False, record=points.append
    )


@pytest.mark.parametrize("given_id", ["12345678", "a-b_c.D-0", "x" * 64])
async def test_valid_request_id_is_used_in_the_response_and_the_logs(edge, application, given_id):
    answer = await ask(edge, *body_of(b"{}"), x_request_id=given_id)

    assert answer.header("x-request-id") == given_id
    assert application.request_ids == [given_id]


@pytest.mark.parametrize(
    "given_id", ["", "short", "x" * 65, "with space", "line\nbreak1", "ümlautümlaut", "<script>alert"]
)
async def test_invalid_request_id_is_replaced(edge, application, given_id):
    answer = await ask(edge, *body_of(b"{}"), x_request_id=given_id)

    request_id = answer.header("x-request-id")
    assert len(bytes.fromhex(request_id)) == 16
    assert application.request_ids == [request_id]


async def test_request_without_id_gets_a_unique_one(edge, application):
    first = await ask(edge, *body_of(b"{}"))
    second = await ask(edge, *body_of(b"{}"))

    assert application.request_ids == [first.header("x-request-id"), second.header("x-request-id")]
    assert len(set(application.request_ids)) == 2


SAFE_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


@pytest.mark.parametrize("size", [2, 2_000], ids=["answer", "refusal"])
async def test_every_response_has_the_security_headers(edge, size):
    answer = await ask(edge, *body_of(b" " * size))

    assert {name: answer.header(name) for name in SAFE_HEADERS} == SAFE_HEADERS


@pytest.mark.parametrize("name", ["cache-control", "content-security-policy"])
async def test_header_set_by_the_handler_is_kept(edge, application, name):
    application.headers = [(name.encode(), b"its own")]

    answer = await ask(edge, *body_of(b"{}"))

    assert answer.header(name) == "its own"


@pytest.mark.parametrize(("https_only", "present"), [(True, True), (False, False)])
async def test_hsts_is_sent_only_with_https(application, https_only, present, points):
    edge = HttpBoundary(application, Limits(), https_only=https_only, record=points.append)

    answer = await ask(edge, *body_of(b"{}"))

    assert (answer.header("strict-transport-security") is not None) is present


@pytest.mark.parametrize("length", ["-1", "x", "1e3"])
async def test_content_length_that_is_no_number_is_rejected_before_reading(edge, application, length):
    answer = await ask(edge, *body_of(b"{}"), content_length=length)

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert (answer.messages_before, application.scopes) == (0, [])


@pytest.mark.parametrize("length", ["1001", "9" * 30])
async def test_content_length_above_the_limit_is_rejected_before_reading(edge, application, length):
    answer = await ask(edge, *body_of(b"{}"), content_length=length)

    assert (answer.status, answer.code) == (413, "body_too_large")
    assert answer.header("connection") == "close"
    assert (answer.messages_before, application.scopes) == (0, [])


async def test_body_above_the_limit_is_rejected_at_the_message_that_exceeds_it(edge, application):
    arriving = Arriving(*body_of(b" " * 600, b" " * 600, b" " * 600))

    answer = await ask(edge, receive=arriving, content_length="2")

    assert (answer.status, answer.code) == (413, "body_too_large")
    assert (answer.messages_before, arriving.taken, application.bodies) == (2, 3, [])


async def test_body_at_the_limit_is_delivered_in_one_message(edge, application):
    answer = await ask(edge, *body_of(b"[", b" " * 998, b"]"), content_length="1000")

    assert answer.status == 200
    assert application.bodies == [b"[" + b" " * 998 + b"]"]


@pytest.mark.parametrize("messages", [[], body_of(b"{", b"}")[:1]], ids=["nothing", "half"])
async def test_body_after_the_deadline_is_rejected(application, messages, points):
    edge = HttpBoundary(application, Limits(body_deadline_s=0.01), https_only=False, record=points.append)

    answer = await ask(edge, *messages)

    assert (answer.status, answer.code) == (408, "body_too_slow")
    assert application.bodies == []


async def test_client_that_disconnects_within_its_body_gets_no_response(edge, application):
    answer = await ask(edge, *body_of(b"{", b"}")[:1], {"type": "http.disconnect"})

    assert answer is None
    assert application.bodies == []


async def test_application_receives_disconnect_after_the_body(points):
    heard = []

    async def listener(scope, _, __):
        receive = await context_of(scope).body.read(is_authenticated=True)
        heard.extend([await receive(), await receive()])

    await ask(
        HttpBoundary(listener, Limits(), https_only=False, record=points.append),
        *body_of(b"[", b"]"),
        {"type": "http.disconnect"},
    )

    assert heard == [
        {"type": "http.request", "body": b"[]", "more_body": False},
        {"type": "http.disconnect"},
    ]


async def test_message_without_optional_keys_is_an_empty_body(edge, application):
    answer = await ask(edge, {"type": "http.request"})

    assert answer.status == 200
    assert application.bodies == [b""]


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
async def test_body_of_get_head_and_options_is_passed_on_unchecked(edge, application, method):
    unread = Arriving({"type": "http.request", "body": b"[" * 990, "more_body": False})

    answer = await ask(edge, method=method, content_type="text/plain", receive=unread)

    assert answer.status == 200
    assert application.bodies == [b"[" * 990]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_empty_body_needs_no_media_type(edge, method):
    answer = await ask(edge, *body_of(b""), method=method, content_type="")

    assert answer.status == 200


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=UTF-8",
        'application/json;charset="utf-8"',
        "application/json; charset=utf-8; profile=x",
    ],
)
async def test_json_in_utf_8_is_accepted(edge, content_type):
    answer = await ask(edge, *body_of(b"{}"), content_type=content_type)

    assert answer.status == 200


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "text/json",
        "application/json-patch+json",
        "application/jsonx",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
        "application/json; charset=latin-1",
        "application/json; charset=utf-16",
        "application/json; Charset=latin-1",
    ],
)
async def test_other_media_types_are_rejected(edge, application, content_type):
    answer = await ask(edge, *body_of(b"{}"), content_type=content_type)

    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    assert application.bodies == []


def nested(depth):
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (nested(64), 200),
        (nested(65), 400),
        (b"[" + nested(63) * 3 + b"]", 200),
        (b"[" + nested(64) + b"]", 400),
        (b'{"a":' * 64 + b"1" + b"}" * 64, 200),
        (b'{"a":' * 65 + b"1" + b"}" * 65, 400),
        (b"[" * 65, 400),
        (b"[]" * 200, 200),
        (b'["' + b"[" * 500 + b'"]', 200),
        (b'["\\"' + b"[" * 500 + b'"]', 200),
        (b'["\\\\",' + nested(64) + b"]", 400),
        (b'["\\\\\\"' + b"{" * 500 + b'"]', 200),
        (b'{"' + b"]" * 100 + b'":' + nested(64) + b"}", 400),
    ],
    ids=lambda value: ascii(value[:24]) if isinstance(value, bytes) else str(value),
)
async def test_json_nesting_is_limited_to_64_and_brackets_in_strings_do_not_count(edge, body, status):
    answer = await ask(edge, *body_of(body))

    assert answer.status == status


async def test_small_body_nested_990_deep_gets_a_problem_document(application, points):
    edge = HttpBoundary(application, Limits(), https_only=False, record=points.append)

    answer = await ask(edge, *body_of(nested(990)))

    assert (answer.status, answer.code) == (400, "json_too_deep")
    assert answer.header("content-type") == "application/problem+json"
    assert json.loads(answer.body)["request_id"] == answer.header("x-request-id")


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
async def test_scope_other_than_http_is_passed_on_unchanged(edge, application, kind):
    scope = {"type": kind}

    await edge(scope, None, None)

    assert application.scopes == [scope]


async def test_raw_path_skips_json_checks_but_not_the_size_limit(application, points):
    edge = HttpBoundary(
        application,
        Limits(body_bytes_max=1_000),
        https_only=False,
        record=points.append,
        raw_paths=frozenset({"/raw"}),
    )
    odd = b"\xff" + b"[" * 100

    raw, other = [
        await ask(edge, *body_of(odd), path=path, content_type="x/y") for path in ("/raw", "/other")
    ]
    large = await ask(edge, *body_of(b"x" * 1_001), path="/raw")

    assert (raw.status, other.status, large.status) == (200, 415, 413)
    assert application.bodies == [odd]


class Refusing:
    """Responds 401 without reading the body."""

    async def __call__(self, _, __, send):
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b"{}", "more_body": False})


@pytest.mark.parametrize(
    ("framing", "received"),
    [
        ({"content_length": "9"}, 3),
        ({"transfer_encoding": "chunked"}, 3),
        ({"content_length": "0"}, 0),
        ({}, 0),
    ],
)
async def test_unread_body_is_discarded_after_the_response(points, framing, received):
    edge = HttpBoundary(Refusing(), Limits(), https_only=False, record=points.append)
    arriving = Arriving(*body_of(b"123", b"456", b"789"))

    answer = await ask(edge, receive=arriving, **framing)

    assert (answer.status, answer.messages_before, arriving.taken) == (401, 0, received)
    assert answer.header("connection") == ("close" if received else None)
    assert len(points) == 1


async def test_unread_body_that_never_ends_is_discarded_until_its_deadline(points):
    edge = HttpBoundary(Refusing(), Limits(body_deadline_s=0.01), https_only=False, record=points.append)

    answer = await asyncio.wait_for(ask(edge, content_length="9"), 5)

    assert answer.status == 401


class Filling:
    """Requests that each send 900 bytes of a longer body and then nothing more."""

    def __init__(self, application, points):
        limits = Limits(body_bytes_max=1_000, bodies_bytes_max=4_000)
        self.edge = HttpBoundary(application, limits, https_only=False, record=points.append)
        self.tasks = []

    async def add(self):
        arriving = Arriving({"type": "http.request", "body": b" " * 900, "more_body": True})
        self.tasks.append(asyncio.create_task(ask(self.edge, receive=arriving, content_length="1000")))
        await until(lambda: arriving.taken == 1)

    async def end(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.mark.parametrize(("is_authenticated", "bodies"), [(True, 4), (False, 2)])
async def test_bodies_beyond_the_memory_of_the_process_get_503(application, points, is_authenticated, bodies):
    """Unauthenticated clients get half of the memory."""
    application.is_authenticated = is_authenticated
    filling = Filling(application, points)
    for _ in range(bodies):
        await filling.add()

    refused = await ask(filling.edge, *body_of(b" " * 500), content_length="500")
    await filling.end()
    accepted = await ask(filling.edge, *body_of(b" " * 500), content_length="500")

    assert (refused.status, refused.code) == (503, "too_many_bodies")
    assert int(refused.header("retry-after")) > 0
    assert accepted.status == 200


async def test_unauthenticated_bodies_leave_memory_for_authenticated_ones(application, points):
    filling = Filling(application, points)
    application.is_authenticated = False
    for _ in range(2):
        await filling.add()
    application.is_authenticated = True

    answer = await ask(filling.edge, *body_of(b" " * 1_000), content_length="1000")

    assert answer.status == 200
    await filling.end()
