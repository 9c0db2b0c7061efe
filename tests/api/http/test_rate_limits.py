"""Rate limits of principals: what is counted, and the response headers."""

import asyncio
import re

import asyncpg

from tests.support.calls import BALANCE, statuses
from tests.support.problems import assert_problem


async def test_every_response_has_the_remaining_requests(open_client, limit, bearer):
    await limit("read", 3, window_s=60)
    client, who = await open_client(), bearer()

    answers = [await client.get(BALANCE, headers=who) for _ in range(3)]

    assert [answer.headers["ratelimit"] for answer in answers] == [f'"read";r={left}' for left in (2, 1, 0)]
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"read";q=3;w=60'}


async def test_request_above_the_limit_is_a_problem_with_retry_after(open_client, limit, bearer):
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


async def test_request_rejected_for_another_reason_is_counted(open_client, limit, bearer):
    await limit("read", 2)
    client, who = await open_client(), bearer()

    url = "/v1/api-keys/0b6bd2b4-65d3-4f5c-a5b3-2f6f2a9d8c11"
    assert await statuses(client, 3, url, headers=who) == [404, 404, 429]


async def test_two_users_with_one_address_have_separate_limits(open_client, limit, bearer):
    await limit("read", 1)
    client = await open_client()

    assert [await statuses(client, 2, headers=bearer()) for _ in range(2)] == [[200, 429]] * 2


async def test_user_is_counted_once_across_addresses_and_tokens(open_client, limit, token):
    await limit("read", 2)
    clients = [await open_client(f"203.0.113.{number}") for number in range(4)]
    tokens = [token("one@example.com") for _ in clients]

    answers = [
        await client.get(BALANCE, headers={"Authorization": f"Bearer {token}"})
        for client, token in zip(clients, tokens, strict=True)
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]


async def test_a_plan_has_limits_of_its_own(open_client, limit, bearer, limited_addresses):
    await limit("read", 1)
    await limit("read", 3, plan="pro")
    client, who = await open_client(), bearer()
    assert await statuses(client, 2, headers=who) == [200, 429]
    connection = await asyncpg.connect(limited_addresses.owner)
    await connection.execute("update accounts set plan = 'pro'")
    await connection.close()

    another = await open_client()  # a new application has not cached the plan

    assert await statuses(another, 3, headers=who) == [200, 200, 429]


async def test_an_api_key_and_its_maker_are_counted_apart(open_client, limit, bearer):
    await limit("read", 2)
    client, maker = await open_client(), bearer()
    made = await client.post("/v1/api-keys", json={"name": "K", "scopes": ["credits:read"]}, headers=maker)
    key = {"Authorization": f"Bearer {made.json()['key']}"}

    assert await statuses(client, 3, headers=maker) == [200, 200, 429]
    assert await statuses(client, 3, headers=key) == [200, 200, 429]


async def test_unavailable_database_gives_503_and_liveness_still_responds(
    open_client, bearer, cluster, spoilable_addresses
):
    client, who = await open_client(DATABASE_URL=spoilable_addresses.owner), bearer()
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
