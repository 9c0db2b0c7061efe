"""Rate limits by IP address for requests without a principal."""

import re
import uuid

import pytest

from features.auth.domain.api_keys import issue
from tests.support.calls import BALANCE, statuses
from tests.support.problems import assert_problem

UNKNOWN_KEY = issue(uuid.UUID(int=7), "live").text


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer x", "Basic x", f"Bearer {UNKNOWN_KEY}", "Bearer a.b.c"],
    ids=["none", "empty", "no token", "another scheme", "unknown key", "not signed"],
)
async def test_requests_without_a_valid_token_are_counted_by_address(open_client, limit, authorization):
    await limit("public", 2)
    headers = {"Authorization": authorization} if authorization is not None else {}
    client, elsewhere = await open_client(), await open_client("203.0.113.9")

    assert await statuses(client, 3, headers=headers) == [401, 401, 429]
    assert await statuses(elsewhere, 1, headers=headers) == [401]


async def test_default_limit_without_a_token_is_thirty_requests_per_minute(open_client):
    client = await open_client()

    answers = await statuses(client, 31)

    assert answers == [401] * 30 + [429]


async def test_rate_limited_anonymous_request_has_the_time_of_reset(open_client, limit):
    await limit("public", 1, window_s=60)
    client = await open_client()

    allowed, refused = [await client.get(BALANCE) for _ in range(2)]

    assert allowed.headers["ratelimit"] == '"public";r=0'
    assert_problem(refused, 429, "rate_limited")
    assert re.fullmatch(r'"public";r=0;t=\d+', refused.headers["ratelimit"])


async def test_public_pages_are_counted_by_address(open_client, limit):
    await limit("public", 2)

    assert await statuses(await open_client(), 3, "/schema/openapi.json") == [200, 200, 429]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v1/accounts/x", 404),
        ("DELETE", "/v1/credits/balance", 405),
        ("POST", "/wp-login.php", 404),
    ],
)
async def test_unknown_routes_are_limited_by_address(open_client, limit, bearer, method, path, status):
    await limit("unknown_route", 2)
    client, elsewhere = await open_client(), await open_client("203.0.113.9")

    assert await statuses(client, 3, path, method=method) == [status, status, 429]
    assert await statuses(client, 1, path, method=method, headers=bearer()) == [429]
    assert await statuses(elsewhere, 1, path, method=method) == [status]
    refused = await client.request(method, path)
    assert_problem(refused, 429, "rate_limited")
    assert refused.headers["ratelimit"].startswith('"unknown_route";r=0;t=')
    assert int(refused.headers["retry-after"]) > 0


async def test_unknown_routes_do_not_use_up_the_limit_of_known_ones(open_client, limit, bearer):
    await limit("unknown_route", 1)
    client = await open_client()

    assert await statuses(client, 2, "/nothing") == [404, 429]
    assert await statuses(client, 1, headers=bearer()) == [200]
    assert await statuses(client, 1) == [401]
    assert await statuses(client, 1, "/v1/runs/00000000-0000-0000-0000-000000000000", headers=bearer()) == [
        404
    ]


async def test_liveness_is_never_limited(open_client, limit):
    await limit("public", 1)
    client = await open_client()

    assert await statuses(client, 5, "/health") == [200] * 5
    assert await statuses(client, 5, "/health/ready") == [200] * 5  # has its own limit
    assert "ratelimit" not in (await client.get("/health")).headers
    assert await statuses(client, 2) == [401, 429]


@pytest.mark.parametrize(
    ("hops", "forwarded"),
    [
        ("0", ["{n}.1.1.1"]),
        ("0", ["{n}.1.1.1, 203.0.113.9"]),
        ("1", ["{n}.1.1.1, 203.0.113.9"]),
        ("1", ["{n}.1.1.1", "2001:db8:{n}::", "203.0.113.9"]),
        ("1", ["2001:db8::{n}"]),
        ("2", ["{n}.1.1.1, 203.0.113.9, 10.0.0.1"]),
        ("2", ["203.0.113.9, {n}.0.0.1"]),
        ("1", ["garbage {n}"]),
    ],
)
async def test_forged_forwarded_addresses_do_not_avoid_the_limit(open_client, limit, hops, forwarded):
    await limit("public", 3)
    client = await open_client(OSLIRA_PROXY_HOPS=hops)

    answers = [
        await client.get(BALANCE, headers=[("X-Forwarded-For", line.format(n=number)) for line in forwarded])
        for number in range(1, 9)
    ]

    assert [answer.status_code for answer in answers] == [401] * 3 + [429] * 5


@pytest.mark.parametrize(("hops", "forwarded"), [("1", "1.1.1.1, {}"), ("2", "1.1.1.1, {}, 10.0.0.1")])
async def test_clients_behind_our_proxies_are_counted_apart(open_client, limit, hops, forwarded):
    await limit("public", 1)
    client = await open_client(OSLIRA_PROXY_HOPS=hops)

    for address in ("203.0.113.1", "203.0.113.2", "2001:db8:1::1", "2001:db8:2::1"):
        headers = {"X-Forwarded-For": forwarded.format(address)}
        assert await statuses(client, 2, headers=headers) == [401, 429]
