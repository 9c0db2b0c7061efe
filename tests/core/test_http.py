"""What holds for every route: problems, closed doors, hostile bodies, other origins."""

import dataclasses
import json
import uuid

import httpx
import msgspec
import pytest
from structlog.testing import capture_logs

from core.app import create_app
from features.credits.application.balances import Balances
from infrastructure.database.sessions import DatabaseUnavailable

PUBLIC = ("/health", "/schema")
ORIGIN = "https://app.example"


@pytest.fixture(autouse=True)
def logs():
    """What was logged, as data instead of text on the terminal."""
    with capture_logs() as logs:
        yield logs


@pytest.fixture
def operator(bearer):
    return bearer("operator@example.com", is_operator=True)


@pytest.fixture
async def account_id(client, bearer):
    return (await client.get("/v1/credits/balance", headers=bearer())).json()["account_id"]


@pytest.fixture
def post(client, operator, account_id):
    """A function: send a body, as it is, to one of the administration's routes."""

    async def send(noun, content, content_type="application/json"):
        url = f"/v1/admin/accounts/{account_id}/credits/{noun}"
        headers = {**operator, "Content-Type": content_type}
        return await client.post(url, headers=headers, content=content)

    return send


@pytest.fixture
async def client_of():
    """A function: a client of an application that a test has changed."""
    clients = []

    def make(application):
        transport = httpx.ASGITransport(create_app(application), raise_app_exceptions=False)
        clients.append(httpx.AsyncClient(transport=transport, base_url="http://test"))
        return clients[-1]

    yield make
    for client in clients:
        await client.aclose()


class FailingReader:
    def __init__(self, error):
        self.error = error

    async def balance(self, _):
        raise self.error


def assert_problem(answer, status, code):
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert problem["type"] == f"urn:oslira:problem:{code}"
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/", "/nothing", "/v1", "/v1/credits", "/v1/credits/balance/x"])
async def test_an_unknown_route_is_a_problem(client, bearer, path):
    answer = await client.get(path, headers=bearer())

    assert_problem(answer, 404, "route_not_found")


@pytest.mark.parametrize("account", ["x", "1", "00000000", "%00"])
async def test_an_address_with_a_wrong_id_is_an_unknown_route(client, operator, account):
    answer = await client.post(f"/v1/admin/accounts/{account}/credits/grants", headers=operator, json={})

    assert_problem(answer, 404, "route_not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("DELETE", "/v1/credits/balance", "GET"), ("PATCH", "/health", "GET"), ("POST", "/schema", "GET")],
)
async def test_a_wrong_method_is_told_the_right_ones(client, bearer, method, path, allowed):
    answer = await client.request(method, path, headers=bearer())

    assert_problem(answer, 405, "method_not_allowed")
    assert allowed in answer.headers["allow"]


async def test_without_a_token_a_client_is_told_what_to_send(client):
    answer = await client.get("/v1/credits/balance")

    assert_problem(answer, 401, "token_missing")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in answer.json()["detail"]


@pytest.mark.parametrize(
    "authorization", ["Bearer x", "Basic dTpw", "x", "Bearer", "\xff", "Bearer " + "x" * 9_000]
)
async def test_a_token_that_is_none_is_refused(client, authorization):
    headers = {"Authorization": authorization.encode("latin-1")}

    answer = await client.get("/v1/credits/balance", headers=headers)

    assert_problem(answer, 401, "token_invalid")
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_every_route_that_is_not_public_is_closed_without_a_token(client):
    paths = (await client.get("/schema/openapi.json")).json()["paths"]
    closed = [
        (method, path.replace("{account_id}", str(uuid.uuid4())))
        for path, methods in paths.items()
        for method in methods
        if not path.startswith(PUBLIC)
    ]

    answers = [await client.request(method, path) for method, path in closed]

    assert len(closed) == 8
    assert {answer.status_code for answer in answers} == {401}


@pytest.mark.parametrize("path", ["/health", "/health/ready", "/schema", "/schema/openapi.json"])
async def test_public_routes_are_open(client, path):
    answer = await client.get(path)

    assert answer.status_code == 200


@pytest.mark.parametrize("value", [b"x", b"\xff", b"1", b"' or 1=1"])
async def test_the_account_header_has_to_be_an_id(client, bearer, value):
    answer = await client.get("/v1/credits/balance", headers={**bearer(), "Oslira-Account": value})

    assert_problem(answer, 422, "account_header_invalid")


@pytest.mark.parametrize("noun", ["grants", "holds", "settlements", "releases", "refunds"])
async def test_an_unknown_field_is_refused_by_name(post, noun):
    body = {"reference": "r", "credits": 1, "credits_spent": 1, "hold_reference": "h", "surprise": 1}

    answer = await post(noun, json.dumps(body))

    assert_problem(answer, 400, "invalid_request")
    assert "unknown field" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"reference": "r", "credits": 1.5}, "credits"),
        ({"reference": "r", "credits": []}, "credits"),
        ({"reference": "r", "credits": None}, "credits"),
        ({"reference": "r", "credits": 0}, "credits"),
        ({"reference": "r", "credits": 2**70}, "credits"),
        ({"reference": "r", "credits": -(2**70)}, "credits"),
        ({"reference": 1, "credits": 1}, "reference"),
        ({"reference": "", "credits": 1}, "reference"),
        ({"reference": "r" * 201, "credits": 1}, "reference"),
        ({"reference": "r", "credits": 1, "description": "d" * 501}, "description"),
        ({"reference": "r", "credits": 1, "transaction_type": "DROP TABLE"}, "transaction_type"),
        ({"reference": "r", "credits": 1, "expires_at": "tomorrow"}, "expires_at"),
        ({"reference": "r", "credits": 1, "expires_at": "2030-01-01T00:00:00"}, "expires_at"),
    ],
    ids=lambda value: ascii(value)[:60],
)
async def test_a_wrong_value_is_refused_with_its_fields_name(post, body, field):
    answer = await post("grants", json.dumps(body))

    assert_problem(answer, 400, "invalid_request")
    assert [error["field"] for error in answer.json()["errors"]] == [field]


@pytest.mark.parametrize("missing", ["reference", "credits"])
async def test_a_missing_field_is_named(post, missing):
    body = {"reference": "r", "credits": 1}
    del body[missing]

    answer = await post("holds", json.dumps(body))

    assert_problem(answer, 400, "invalid_request")
    assert missing in answer.json()["detail"]


async def test_a_missing_body_is_explained(post):
    answer = await post("holds", b"")

    assert_problem(answer, 400, "invalid_request")
    assert "body" in answer.json()["detail"]


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"}",
        b"{}}",
        b"null",
        b"[]",
        b'"text"',
        b"{'reference': 'r'}",
        b'{"reference": "r", "credits": NaN}',
        b'{"reference": "r", "credits": Infinity}',
        b'{"reference": "r", "credits": 1e999}',
        b'{"reference": "r", "credits": ' + b"9" * 5_000 + b"}",
        b'{"reference": "r", "credits": 1,}',
        b'{"reference": "\\ud800", "credits": 1}',
        b'\xef\xbb\xbf{"reference": "r", "credits": 1}',
    ],
    ids=lambda content: ascii(content[:40]),
)
async def test_what_is_no_json_object_is_refused(post, content):
    answer = await post("holds", content)

    assert_problem(answer, 400, "invalid_request")


@pytest.mark.parametrize("content", [b'{"reference": "\xff", "credits": 1}', b'{"\xc3\x28": 1}'], ids=ascii)
async def test_what_is_no_utf_8_is_refused(post, content):
    answer = await post("holds", content)

    assert answer.status_code in (400, 415)
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


async def test_a_2_kilobyte_body_nested_990_deep_is_refused(post):
    answer = await post("grants", b'{"reference": ' + b"[" * 990 + b"]" * 990 + b"}")

    assert_problem(answer, 400, "json_too_deep")


async def test_duplicate_keys_count_once(post):
    answer = await post("holds", b'{"reference": "r", "credits": 1, "credits": 2}')

    assert answer.status_code == 200
    assert answer.json()["credits_moved"] == answer.json()["credits_held"] == 2


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/json; charset=latin-1", "application/msgpack", ""]
)
async def test_a_body_of_another_type_is_refused(post, content_type):
    answer = await post("holds", b'{"reference": "r", "credits": 1}', content_type)

    assert_problem(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("noun", "body"),
    [
        ("grants", {"reference": "a\0", "credits": 1}),
        ("holds", {"reference": "a\0", "credits": 1}),
        ("refunds", {"reference": "a\0", "credits": 1, "hold_reference": "h"}),
        ("settlements", {"reference": "a\0", "credits_spent": 1}),
        ("releases", {"reference": "a\0"}),
        ("refunds", {"reference": "a", "credits": 1, "hold_reference": "h\0"}),
        ("grants", {"reference": "a", "credits": 1, "description": "\0"}),
        ("holds", {"reference": "a", "credits": 1, "description": "\0"}),
        ("refunds", {"reference": "a", "credits": 1, "hold_reference": "h", "description": "\0"}),
    ],
    ids=ascii,
)
async def test_text_with_a_nul_is_refused(post, noun, body):
    answer = await post(noun, json.dumps(body))

    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("invalid_request", "movement_invalid")


@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
@pytest.mark.parametrize(
    "address",
    ["balance?at={}", "transactions?since={}", "transactions?until={}", "transactions.csv?since={}"],
)
async def test_an_instant_beyond_the_calendar_is_refused(client, bearer, address, instant):
    answer = await client.get(f"/v1/credits/{address.format(instant.replace('+', '%2B'))}", headers=bearer())

    assert answer.status_code in (400, 422)
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
async def test_an_expiry_beyond_the_calendar_is_refused(post, instant):
    answer = await post("grants", json.dumps({"reference": "r", "credits": 1, "expires_at": instant}))

    assert answer.status_code in (400, 422)
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


async def test_an_instant_without_its_offset_is_refused(client, bearer):
    answer = await client.get("/v1/credits/balance?at=2026-01-01T00:00:00", headers=bearer())

    assert answer.status_code in (400, 422)


async def test_a_mistake_of_ours_is_a_problem_without_its_text(application, client_of, bearer, logs):
    balances = Balances(FailingReader(KeyError("canary")))

    answer = await client_of(dataclasses.replace(application, balances=balances)).get(
        "/v1/credits/balance", headers=bearer()
    )

    assert_problem(answer, 500, "internal_error")
    assert "canary" not in answer.text + str(answer.headers)
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["unhandled_error"]


async def test_a_database_that_is_down_is_worth_another_try(application, client_of, bearer):
    balances = Balances(FailingReader(DatabaseUnavailable()))

    answer = await client_of(dataclasses.replace(application, balances=balances)).get(
        "/v1/credits/balance", headers=bearer()
    )

    assert_problem(answer, 503, "database_unavailable")
    assert int(answer.headers["retry-after"]) > 0


@pytest.fixture
def foreign(application, client_of):
    """A client of an application that knows one origin."""
    settings = msgspec.structs.replace(application.settings, cors_origins=(ORIGIN,))
    return client_of(dataclasses.replace(application, settings=settings))


@pytest.mark.parametrize("path", ["/health", "/v1/credits/balance", "/nothing"])
async def test_the_configured_origin_may_read_answers_and_refusals(foreign, path):
    answer = await foreign.get(path, headers={"Origin": ORIGIN})

    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "x-request-id" in answer.headers["access-control-expose-headers"]
    assert answer.headers["vary"] == "Origin"


async def test_the_configured_origin_may_read_a_refusal_at_the_edge(foreign):
    answer = await foreign.post("/v1/credits/balance", content=b"x", headers={"Origin": ORIGIN})

    assert answer.status_code == 415
    assert answer.headers["access-control-allow-origin"] == ORIGIN


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://app.example", "https://app.example.evil", "null"]
)
async def test_other_origins_may_read_nothing(foreign, origin):
    answer = await foreign.get("/health", headers={"Origin": origin})

    assert "access-control-allow-origin" not in answer.headers


async def test_a_preflight_is_answered_without_a_token(foreign):
    answer = await foreign.options(
        "/v1/credits/balance",
        headers={
            "Origin": ORIGIN,
            "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "authorization, oslira-account, x-request-id",
        },
    )

    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "GET" in answer.headers["access-control-allow-methods"]
    assert "authorization" in answer.headers["access-control-allow-headers"]


async def test_a_preflight_of_another_origin_is_refused(foreign):
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}

    answer = await foreign.options("/v1/credits/balance", headers=headers)

    assert answer.status_code == 400
    assert "access-control-allow-origin" not in answer.headers


async def test_without_configured_origins_there_are_no_such_headers(client):
    answer = await client.get("/health", headers={"Origin": ORIGIN})

    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("path", ["/health", "/health/ready", "/schema", "/v1/credits/transactions.csv"])
async def test_a_head_is_a_get_without_its_body(client, bearer, path):
    headers = bearer()

    get, head = await client.get(path, headers=headers), await client.head(path, headers=headers)

    assert (head.status_code, head.content) == (get.status_code, b"")
    assert head.headers["content-type"] == get.headers["content-type"]
    assert head.headers.get("content-length") == get.headers.get("content-length")
