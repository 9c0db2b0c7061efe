"""Behaviour of every route: problem documents, and authentication by default."""

import re
import uuid

import pytest
from litestar.exceptions import InternalServerException, ValidationException

from features.credits.application.balances import Balances
from infrastructure.database.clients import DatabaseUnavailable
from tests.support.problems import assert_problem

PUBLIC = (
    *("/health", "/schema", "/v1/refund-policy", "/v1/analyses/anonymous", "/v1/billing/plans"),
    "/v1/webhooks/stripe",
)


class FailingReader:
    def __init__(self, error):
        self.error = error

    async def balance(self, _):
        raise self.error


@pytest.mark.parametrize("path", ["/nothing", "/v1", "/v1/credits", "/v1/credits/balance/x"])
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
async def test_wrong_method_gets_the_allowed_methods(client, bearer, method, path, allowed):
    answer = await client.request(method, path, headers=bearer())

    assert_problem(answer, 405, "method_not_allowed")
    assert allowed in answer.headers["allow"]


async def test_request_without_a_token_gets_instructions(client):
    answer = await client.get("/v1/credits/balance")

    assert_problem(answer, 401, "token_missing")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in answer.json()["detail"]


@pytest.mark.parametrize(
    "authorization", ["Bearer x", "Basic dTpw", "x", "Bearer", "\xff", "Bearer " + "x" * 9_000]
)
async def test_invalid_token_is_rejected(client, authorization):
    headers = {"Authorization": authorization.encode("latin-1")}

    answer = await client.get("/v1/credits/balance", headers=headers)

    assert_problem(answer, 401, "token_invalid")
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_every_route_that_is_not_public_requires_a_token(client):
    paths = (await client.get("/schema/openapi.json")).json()["paths"]
    closed = [
        (method, re.sub(r"\{\w+\}", str(uuid.uuid4()), path))
        for path, methods in paths.items()
        for method in methods
        if not path.startswith(PUBLIC)
    ]

    answers = [await client.request(method, path) for method, path in closed]

    assert len(closed) > 25
    assert {answer.status_code for answer in answers} == {401}


@pytest.mark.parametrize("path", ["/health", "/health/ready", "/schema", "/schema/openapi.json"])
async def test_public_routes_need_no_token(client, path):
    answer = await client.get(path)

    assert answer.status_code == 200


@pytest.mark.parametrize("value", [b"x", b"\xff", b"1", b"' or 1=1"])
async def test_the_account_header_has_to_be_an_id(client, bearer, value):
    answer = await client.get("/v1/credits/balance", headers={**bearer(), "Oslira-Account": value})

    assert_problem(answer, 422, "account_header_invalid")


async def test_unhandled_error_is_a_problem_without_its_text(application, client_of, bearer, logs):
    balances = Balances(FailingReader(KeyError("canary")))

    answer = await client_of(application.replacing(balances=balances)).get(
        "/v1/credits/balance", headers=bearer()
    )

    assert_problem(answer, 500, "internal_error")
    assert "canary" not in answer.text + str(answer.headers)
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["unhandled_error"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InternalServerException("canary"), 500, "internal_error"),
        (ValidationException("canary"), 400, "invalid_request"),
        (ValidationException("canary", extra=["canary"]), 400, "invalid_request"),
    ],
)
async def test_text_of_a_framework_exception_is_not_shown(
    application, client_of, bearer, error, status, code
):
    balances = Balances(FailingReader(error))

    answer = await client_of(application.replacing(balances=balances)).get(
        "/v1/credits/balance", headers=bearer()
    )

    assert_problem(answer, status, code)
    assert "canary" not in answer.text + str(answer.headers)


async def test_unavailable_database_gives_503_with_retry_after(application, client_of, bearer):
    balances = Balances(FailingReader(DatabaseUnavailable()))

    answer = await client_of(application.replacing(balances=balances)).get(
        "/v1/credits/balance", headers=bearer()
    )

    assert_problem(answer, 503, "database_unavailable")
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("path", ["/health", "/health/ready", "/schema", "/v1/credits/transactions.csv"])
async def test_a_head_is_a_get_without_its_body(client, bearer, path):
    headers = bearer()

    get, head = await client.get(path, headers=headers), await client.head(path, headers=headers)

    assert (head.status_code, head.content) == (get.status_code, b"")
    assert head.headers["content-type"] == get.headers["content-type"]
    assert head.headers.get("content-length") == get.headers.get("content-length")
