"""How often one may call: who is counted, as what, and what the answer says."""

import asyncio
import re
from contextlib import AsyncExitStack

import asyncpg
import httpx
import pytest

from core.app import create_app
from core.wiring import build, surroundings
from tests.core.problems import assert_problem

BALANCE = "/v1/credits/balance"
PEER = "198.51.100.1"


@pytest.fixture
async def limit(spoilable_addresses):
    """A function: set a limit, for the free plan unless another is named."""

    async def limit(route_class, requests_max, *, plan="free", window_s=3_600):
        connection = await asyncpg.connect(spoilable_addresses.owner)
        await connection.execute(
            """
            update rate_limits set requests_max = $3, window_s = $4 where plan = $1 and route_class = $2
            """,
            *(plan, route_class, requests_max, window_s),
        )
        await connection.close()

    return limit


@pytest.fixture
async def open_client(spoilable_addresses, place):
    """A function: a client of a new application on the test's own database, calling from an address."""
    async with AsyncExitStack() as stack:
        applications = {}

        async def make(peer=PEER, **environ):
            settings = {
                "DATABASE_URL": spoilable_addresses.owner,
                "OSLIRA_DATA_DIR": str(place.settings.data_dir),
                **environ,
            }
            name = str(environ)
            if name not in applications:
                applications[name] = await stack.enter_async_context(build(surroundings(settings)))
            transport = httpx.ASGITransport(
                create_app(applications[name]), raise_app_exceptions=False, client=(peer, 1)
            )
            return await stack.enter_async_context(
                httpx.AsyncClient(transport=transport, base_url="http://test")
            )

        yield make


async def statuses(client, requests, url=BALANCE, *, method="GET", **options):
    """The answers' statuses, one after another."""
    return [(await client.request(method, url, **options)).status_code for _ in range(requests)]


async def test_every_answer_says_what_is_left(open_client, limit, bearer):
    await limit("read", 3, window_s=60)
    client, who = await open_client(), bearer()

    answers = [await client.get(BALANCE, headers=who) for _ in range(3)]

    assert [answer.headers["ratelimit"] for answer in answers] == [f'"read";r={left}' for left in (2, 1, 0)]
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"read";q=3;w=60'}


async def test_one_too_many_is_refused_with_a_problem_that_says_when_to_come_back(open_client, limit, bearer):
    await limit("read", 1, window_s=60)
    client, who = await open_client(), bearer()
    await client.get(BALANCE, headers=who)

    answer = await client.get(BALANCE, headers=who)

    assert_problem(answer, 429, "rate_limited")
    seconds = int(answer.headers["retry-after"])
    assert 1 <= seconds <= 61
    assert answer.headers["ratelimit"] == f'"read";r=0;t={seconds}'
    assert answer.headers["ratelimit-policy"] == '"read";q=1;w=60'
    assert answer.json()["facts"] == {
        "route_class": "read",
        "limit": 1,
        "window_seconds": 60,
        "retry_after_seconds": seconds,
    }
    assert f"Try again in {seconds} seconds." in answer.json()["detail"]


async def test_many_at_once_are_granted_exactly_the_limit(open_client, limit, bearer):
    await limit("read", 7)
    client, who = await open_client(), bearer()

    answers = await asyncio.gather(*(client.get(BALANCE, headers=who) for _ in range(60)))

    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [429] * 53


async def test_reads_and_writes_are_counted_apart(open_client, limit, bearer):
    await limit("read", 2)
    await limit("write", 1)
    client, who = await open_client(), bearer()

    assert await statuses(client, 3, headers=who) == [200, 200, 429]
    assert await statuses(client, 2, "/v1/accounts", method="POST", json={"name": "A"}, headers=who) == [
        201,
        429,
    ]


async def test_head_counts_as_a_read(open_client, limit, bearer):
    await limit("read", 1)
    client, who = await open_client(), bearer()

    assert await statuses(client, 1, method="HEAD", headers=who) == [200]
    assert await statuses(client, 1, headers=who) == [429]


async def test_a_refusal_of_another_kind_counts_as_well(open_client, limit, bearer):
    await limit("read", 2)
    client, who = await open_client(), bearer()

    url = "/v1/api-keys/0b6bd2b4-65d3-4f5c-a5b3-2f6f2a9d8c11"
    assert await statuses(client, 3, url, headers=who) == [404, 404, 429]


async def test_two_users_behind_one_address_do_not_take_from_each_other(open_client, limit, bearer):
    await limit("read", 1)
    client = await open_client()

    assert [await statuses(client, 2, headers=bearer()) for _ in range(2)] == [[200, 429]] * 2


async def test_a_user_is_the_same_wherever_they_call_from_and_with_whichever_token(open_client, limit, token):
    await limit("read", 2)
    clients = [await open_client(f"203.0.113.{number}") for number in range(4)]
    tokens = [token("one@example.com") for _ in clients]

    answers = [
        await client.get(BALANCE, headers={"Authorization": f"Bearer {token}"})
        for client, token in zip(clients, tokens, strict=True)
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]


async def test_a_plan_has_limits_of_its_own(open_client, limit, bearer, spoilable_addresses):
    await limit("read", 1)
    await limit("read", 3, plan="pro")
    client, who = await open_client(), bearer("pro@example.com")
    connection = await asyncpg.connect(spoilable_addresses.owner)
    await client.post("/v1/accounts", json={"name": "A"}, headers=who)  # signs them up
    await connection.execute("update accounts set plan = 'pro'")
    await connection.close()
    fresh = await open_client(OSLIRA_SIGNUP_BONUS_CREDITS="0")  # remembers no plan of theirs

    account = (await fresh.get("/v1/accounts", headers=who)).json()["items"][0]["id"]
    headers = {**who, "Oslira-Account": account}
    assert await statuses(fresh, 3, headers=headers) == [200, 200, 429]


async def test_an_api_key_and_its_maker_are_counted_apart(open_client, limit, bearer):
    await limit("read", 2)
    client, maker = await open_client(), bearer()
    made = await client.post("/v1/api-keys", json={"name": "K", "scopes": ["credits:read"]}, headers=maker)
    key = {"Authorization": f"Bearer {made.json()['key']}"}

    assert await statuses(client, 3, headers=maker) == [200, 200, 429]
    assert await statuses(client, 3, headers=key) == [200, 200, 429]


@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer x", "Basic x", "Bearer osl_live_x", "Bearer a.b.c"]
)
async def test_whoever_has_no_valid_token_is_counted_by_address(open_client, limit, authorization):
    await limit("public", 2)
    headers = {"Authorization": authorization} if authorization is not None else {}
    client, elsewhere = await open_client(), await open_client("203.0.113.9")

    assert await statuses(client, 3, headers=headers) == [401, 401, 429]
    assert await statuses(elsewhere, 1, headers=headers) == [401]


async def test_thirty_calls_a_minute_without_a_token_are_what_is_delivered(open_client):
    client = await open_client()

    answers = await statuses(client, 31)

    assert answers == [401] * 30 + [429]


async def test_the_refusal_of_an_anonymous_call_says_when_to_come_back(open_client, limit):
    await limit("public", 1, window_s=60)
    client = await open_client()

    allowed, refused = [await client.get(BALANCE) for _ in range(2)]

    assert allowed.headers["ratelimit"] == '"public";r=0'
    assert_problem(refused, 429, "rate_limited")
    assert re.fullmatch(r'"public";r=0;t=\d+', refused.headers["ratelimit"])


async def test_public_pages_are_counted_by_address(open_client, limit):
    await limit("public", 2)

    assert await statuses(await open_client(), 3, "/schema/openapi.json") == [200, 200, 429]


async def test_health_is_never_limited(open_client, limit):
    await limit("public", 1)
    client = await open_client()

    assert await statuses(client, 5, "/health") == [200] * 5
    assert await statuses(client, 5, "/health/ready") == [200] * 5
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
async def test_what_a_client_adds_to_its_forwarded_addresses_is_useless(open_client, limit, hops, forwarded):
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


async def test_while_the_database_is_away_calls_answer_503_and_liveness_answers(
    open_client, bearer, cluster, spoilable_addresses
):
    client, who = await open_client(), bearer()
    assert await statuses(client, 1, headers=who) == [200]
    name = re.search(r"t_[0-9a-f]{12}", spoilable_addresses.owner)[0]
    connection = await asyncpg.connect(cluster.url("postgres"))
    await connection.execute(f'alter database "{name}" allow_connections false')
    await connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", name
    )
    await connection.close()

    answers = await asyncio.gather(
        *(client.get(BALANCE, headers=who) for _ in range(10)),
        *(client.get(BALANCE) for _ in range(10)),
        *(client.get(BALANCE, headers=bearer()) for _ in range(3)),
    )

    assert {answer.status_code for answer in answers} == {503}
    assert await statuses(client, 1, "/health") == [200]
