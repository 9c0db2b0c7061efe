"""Light analyses without an account: a run, and a token that opens the result for one day."""

import asyncio
import hashlib
import uuid

import asyncpg
import pytest

from features.analysis.domain.anonymous import (
    ANONYMOUS_ACCOUNT,
    AnonymousFacts,
    AnonymousReason,
    AnonymousResult,
)
from infrastructure.database.analysis.anonymous import PostgresAnonymousResults
from tests.support import until
from tests.support.calls import statuses
from tests.support.problems import assert_problem

ANONYMOUS = "/v1/analyses/anonymous"
TABLES = """
select format('%I.%I', schemaname, tablename) from pg_tables
where schemaname not in ('pg_catalog', 'information_schema')
"""
RESULT = AnonymousResult(
    username="ann",
    full_name="Ann",
    score=71,
    tier="warm",
    niche="coffee",
    summary="Brews every morning.",
    reasons=(AnonymousReason(effect="for", text="Her audience answers."),),
    facts=AnonymousFacts(
        followers=1_000,
        following=10,
        posts_count=12,
        size="nano",
        engagement_rate=None,
        is_verified=False,
    ),
    is_simulated=True,
)


@pytest.fixture
def name():
    return f"ann{uuid.uuid4().hex[:12]}"


@pytest.fixture
def ask(client, name):
    async def send(username=name):
        return await client.post(ANONYMOUS, json={"username": username})

    return send


@pytest.fixture
def results(database):
    return PostgresAnonymousResults(database)


def end(owner, run_id, status="completed", outcome="completed"):
    return owner.execute(
        "update runs set status = $3, outcome = $4, ended_at = now() where account_id = $1 and id = $2",
        *(ANONYMOUS_ACCOUNT, uuid.UUID(run_id), status, outcome),
    )


async def test_visitor_gets_a_run_and_a_token_for_a_day(client, ask, owner, name):
    answer = await ask(f"@{name}")

    assert answer.status_code == 202
    started = answer.json()
    assert len(started["token"]) == 43
    assert started["poll_url"] == f"{ANONYMOUS}/{started['token']}"
    assert (answer.headers["retry-after"], answer.headers["cache-control"]) == ("2", "no-store")
    assert "location" not in answer.headers
    run = await owner.fetchrow(
        """
        select account_id, kind, status, credits_held, queue, subject ->> 'username' from runs where id = $1
        """,
        uuid.UUID(started["run_id"]),
    )
    assert tuple(run) == (ANONYMOUS_ACCOUNT, "anonymous_analysis", "queued", 0, "runs", name)
    read = await client.get(started["poll_url"])
    assert read.json() == {
        "status": "queued",
        "progress": 0,
        "current_step": None,
        "outcome": None,
        "result": None,
        "expires_at": started["expires_at"],
    }
    assert (read.headers["retry-after"], read.headers["cache-control"]) == ("2", "no-store")


async def test_visitors_with_equal_requests_share_a_run_but_no_token(client, ask, owner, results):
    first, second = [answer.json() for answer in await asyncio.gather(ask(), ask())]
    await results.save(uuid.UUID(first["run_id"]), RESULT)
    await end(owner, first["run_id"])

    assert first["run_id"] == second["run_id"]
    assert first["token"] != second["token"]
    for started in (first, second):
        read = await client.get(started["poll_url"])
        assert read.json()["result"]["score"] == 71
        assert read.json()["result"]["reasons"] == [{"effect": "for", "text": "Her audience answers."}]
        assert "retry-after" not in read.headers


async def test_ended_analysis_is_not_shared(ask, owner):
    first = (await ask()).json()
    await end(owner, first["run_id"])

    assert (await ask()).json()["run_id"] != first["run_id"]


async def test_run_without_a_result_shows_its_outcome(client, ask, owner):
    started = (await ask()).json()
    await end(owner, started["run_id"], "failed", "private")

    read = (await client.get(started["poll_url"])).json()

    assert (read["status"], read["outcome"], read["result"]) == ("failed", "private", None)


async def test_expired_token_is_like_an_unknown_one(client, ask, owner):
    started = (await ask()).json()
    await owner.execute(
        "update anonymous_tokens set expires_at = now() - interval '1 second' where token_hash = $1",
        hashlib.sha256(started["token"].encode()).digest(),
    )

    expired = await client.get(started["poll_url"])
    unknown = await client.get(f"{ANONYMOUS}/{'x' * 43}")

    for answer in (expired, unknown):
        assert_problem(answer, 404, "anonymous_analysis_not_found")
    assert expired.json()["detail"] == unknown.json()["detail"]
    assert started["token"] not in expired.text


async def test_token_is_in_no_table_and_no_log(client, ask, owner, logs):
    started = (await ask()).json()
    await client.get(started["poll_url"])
    await client.get(f"{started['poll_url']}/more")
    await client.get(f"{started['poll_url']}?token={started['token']}")

    async def recorded():
        return await owner.fetchval(
            "select exists (select from traffic.requests where route = $1)"
            " and exists (select from traffic.request_counts where code = 'route_not_found')",
            f"{ANONYMOUS}/{{token}}",
        )

    await until(recorded)
    for (table,) in await owner.fetch(TABLES):
        holds = f"select exists (select from {table} as t where t::text like $1)"
        assert not await owner.fetchval(holds, f"%{started['token']}%"), table
    assert started["token"] not in str(logs)


async def test_visitor_has_five_an_hour_and_all_visitors_share_the_limit_of_their_plan(
    spoilable_addresses, open_client
):
    owner = await asyncpg.connect(spoilable_addresses.owner)
    await owner.execute("update plans set light_per_hour = 6 where name = 'pro'")
    await owner.close()
    database = {"OSLIRA_ENVIRONMENT": "local", "DATABASE_URL": spoilable_addresses.owner}
    client, elsewhere = await open_client(**database), await open_client("203.0.113.9", **database)

    bodies = [{"username": f"profile{number}"} for number in range(8)]
    answers = [await client.post(ANONYMOUS, json=body) for body in bodies[:6]]
    others = [await elsewhere.post(ANONYMOUS, json=body) for body in bodies[6:]]

    assert [answer.status_code for answer in answers] == [202] * 5 + [429]
    assert_problem(answers[5], 429, "rate_limited")
    assert others[0].status_code == 202
    assert_problem(others[1], 429, "light_limit_reached")
    # A waiting client polls every two seconds, which is more than the public limit allows.
    assert await statuses(client, 31, answers[0].json()["poll_url"]) == [200] * 31


async def test_invalid_username_is_rejected(ask):
    assert_problem(await ask("no name"), 422, "username_invalid")


@pytest.mark.parametrize(
    "change",
    [
        "update accounts set deleted_at = now() where id = $1",
        "insert into memberships (account_id, user_id, role) values ($1, gen_random_uuid(), 'owner')",
    ],
    ids=["deleted", "joined"],
)
async def test_visitors_account_cannot_be_deleted_or_joined(owner, change):
    with pytest.raises(Exception, match="visitors_"):
        await owner.execute(change, ANONYMOUS_ACCOUNT)
