"""CORS headers of responses and problems."""

import dataclasses

import msgspec
import pytest

from tests.conftest import client_for

ORIGIN = "https://app.example"


@pytest.fixture(scope="module")
async def foreign(application):
    """A client of an application with one configured origin."""
    settings = msgspec.structs.replace(application.settings, cors_origins=(ORIGIN,))
    async with client_for(dataclasses.replace(application, settings=settings)) as client:
        yield client


@pytest.mark.parametrize("path", ["/health", "/v1/credits/balance", "/nothing"])
async def test_the_configured_origin_may_read_answers_and_refusals(foreign, path):
    answer = await foreign.get(path, headers={"Origin": ORIGIN})

    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "x-request-id" in answer.headers["access-control-expose-headers"]
    assert answer.headers["vary"] == "Origin"


async def test_configured_origin_may_read_a_problem_of_the_http_boundary(foreign):
    answer = await foreign.post("/v1/accounts", content=b"x" * 1_048_577, headers={"Origin": ORIGIN})

    assert answer.status_code == 413
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


@pytest.mark.parametrize("header", ["Last-Event-ID", "If-None-Match", "Idempotency-Key", "Oslira-Account"])
async def test_browser_may_send_the_headers_that_routes_take(foreign, header):
    answer = await foreign.options(
        "/v1/runs/0f8d4c52-7a0e-4a1c-9d2b-5f6d0e3c1b7a/events",
        headers={
            "Origin": ORIGIN,
            "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": header.lower(),
        },
    )

    assert header.lower() in answer.headers["access-control-allow-headers"].split(", ")


@pytest.mark.parametrize(
    "header", ["Content-Disposition", "ETag", "Location", "Retry-After", "RateLimit", "RateLimit-Policy"]
)
async def test_browser_may_read_the_headers_of_responses(foreign, header):
    answer = await foreign.get("/health", headers={"Origin": ORIGIN})

    assert header.lower() in answer.headers["access-control-expose-headers"].split(", ")


async def test_a_preflight_of_another_origin_is_refused(foreign):
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}

    answer = await foreign.options("/v1/credits/balance", headers=headers)

    assert answer.status_code == 400
    assert "access-control-allow-origin" not in answer.headers


async def test_without_configured_origins_there_are_no_cors_headers(client):
    answer = await client.get("/health", headers={"Origin": ORIGIN})

    assert not [name for name in answer.headers if name.startswith("access-control-")]
