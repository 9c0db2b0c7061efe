"""Atomic start of an analysis: credit hold, run and queue entry."""

import asyncio
import uuid

import pytest

from tests.support.problems import assert_problem


async def in_queue(owner, run_id):
    return await owner.fetchval(
        "select queue_name from dbos.workflow_status where workflow_uuid = $1", run_id
    )


async def test_analysis_is_queued_with_its_credits_held(analyse, owner, credits_of):
    answer = await analyse("https://www.instagram.com/NatGeo/")

    assert answer.status_code == 202
    run_id = answer.json()["run_id"]
    assert answer.json() == {
        "run_id": run_id,
        "status": "queued",
        "poll_url": f"/v1/runs/{run_id}",
        "credits_held": 5,
        "is_duplicate": False,
    }
    assert (answer.headers["location"], answer.headers["retry-after"]) == (f"/v1/runs/{run_id}", "2")
    assert await credits_of() == (20, 5)
    assert await in_queue(owner, run_id) == "runs"


async def test_run_stores_its_request_and_its_caller(analyse, runs_of, client, headers, business):
    await analyse(is_fresh=True)
    me = (await client.get("/v1/me", headers=headers)).json()

    (run,) = await runs_of(
        "kind, dedup_key, user_id::text, api_key_id, queue, uses_concurrency_slot, refund_policy"
    )

    assert tuple(run) == (
        "deep_analysis",
        f"analysis:deep:{business}:natgeo",
        me["id"],
        None,
        "runs",
        True,
        2,
    )
    (subject,) = await runs_of("subject ->> 'username', subject ->> 'type', subject ->> 'is_fresh'")
    assert tuple(subject) == ("natgeo", "deep", "true")


@pytest.mark.parametrize(("analysis_type", "credits_held"), [("light", 1), ("deep", 5), ("xray", 6)])
async def test_each_type_has_its_price(analyse, credits_of, analysis_type, credits_held):
    answer = await analyse(type=analysis_type)

    assert answer.json()["credits_held"] == credits_held
    assert await credits_of() == (25 - credits_held, credits_held)


async def test_sixteen_concurrent_starts_are_one_run_and_one_hold(analyse, runs_of, credits_of):
    answers = await asyncio.gather(*(analyse() for _ in range(16)))

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    assert [answer.json()["is_duplicate"] for answer in answers].count(False) == 1
    assert len(await runs_of()) == 1
    assert await credits_of() == (20, 5)


async def test_other_type_or_profile_is_no_duplicate(analyse, runs_of):
    for options in ({}, {"username": "nasa"}, {"type": "light"}):
        assert (await analyse(**options)).json()["is_duplicate"] is False

    assert len(await runs_of()) == 3


async def test_one_idempotency_key_is_one_run(analyse, runs_of, credits_of):
    extra = {"Idempotency-Key": str(uuid.uuid4())}
    first = await analyse(extra=extra)
    again = await analyse(extra=extra)

    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert len(await runs_of()) == 1
    assert await credits_of() == (20, 5)


async def test_repeated_start_with_the_same_run_id_returns_the_run(
    application, caller_of, owner, business, runs_of
):
    """Even if the price has changed and the business is deleted."""
    starts, caller, order = application.dependencies["analysis_starts"], *caller_of
    run_id = uuid.uuid4()
    first = await starts.start(caller, run_id, order)
    await owner.execute("update business_profiles set deleted_at = now() where id = $1", uuid.UUID(business))

    again = await starts.start(caller, run_id, order)

    assert (again.run_id, again.credits_held) == (first.run_id, first.credits_held)
    assert len(await runs_of()) == 1


async def test_start_without_enough_credits_stores_nothing(analyse, runs_of, credits_of):
    for number in range(5):
        await analyse(f"profile{number}")

    refused = await analyse("natgeo")

    assert_problem(refused, 402, "insufficient_credits")
    assert refused.json()["facts"] == {"needed": 5, "available": 0}
    assert len(await runs_of()) == 5
    assert await credits_of() == (0, 25)


async def test_a_key_spends_up_to_its_cap(analyse, key, runs_of):
    sender, key_id = await key(credits_per_month_max=7)

    first = await analyse(sender=sender)
    refused = await analyse("nasa", sender=sender)

    assert first.status_code == 202
    assert_problem(refused, 402, "api_key_cap_reached")
    assert refused.json()["facts"] == {"needed": 5, "cap": 7}
    assert await runs_of("user_id, api_key_id") == [(None, key_id)]


async def test_key_revoked_after_authentication_spends_nothing(analyse, key, owner, runs_of):
    sender, key_id = await key()
    await analyse(query="?dry_run=true", sender=sender)  # the authentication caches the key from here on
    await owner.execute("update api_keys set revoked_at = now() where id = $1", key_id)

    assert_problem(await analyse(sender=sender), 404, "account_not_found")
    assert await runs_of() == []


async def test_a_test_key_never_spends(analyse, bulk, key, runs_of, credits_of):
    sender, _ = await key(mode="test")

    assert_problem(await analyse(sender=sender), 403, "test_key_never_spends")
    assert_problem(await bulk("natgeo", sender=sender), 403, "test_key_never_spends")
    assert (await analyse(query="?dry_run=true", sender=sender)).status_code == 200
    assert await runs_of() == []
    assert await credits_of() == (25, 0)


@pytest.mark.parametrize("state", ["unknown", "deleted", "another's"])
async def test_business_must_exist(analyse, client, headers, bearer, runs_of, business, state):
    business_profile_id = business
    if state == "unknown":
        business_profile_id = str(uuid.uuid4())
    elif state == "deleted":
        await client.delete(f"/v1/business-profiles/{business}", headers=headers)
    else:
        made = await client.post("/v1/business-profiles", headers=bearer(), json={"name": "Theirs"})
        business_profile_id = made.json()["id"]

    for query in ("", "?dry_run=true"):
        refused = await analyse(business_profile_id=business_profile_id, query=query)
        assert_problem(refused, 404, "business_profile_not_found")
    assert await runs_of() == []


async def test_invalid_username_is_rejected(analyse, runs_of):
    assert_problem(await analyse("not a name"), 422, "username_invalid")
    assert await runs_of() == []


async def test_light_analyses_are_limited_by_the_hour(analyse, owner, account, runs_of):
    await owner.execute("update accounts set plan = 'free' where id = $1", account)
    allowed = [await analyse(f"profile{number}", type="light") for number in range(5)]

    refused = await analyse(type="light")
    repeated = await analyse("profile3", type="light")
    deeper = await analyse()

    assert [answer.status_code for answer in allowed] == [202] * 5
    assert_problem(refused, 429, "light_limit_reached")
    assert refused.json()["facts"] == {"limit": 5}
    assert 3_500 < int(refused.headers["retry-after"]) <= 3_600
    assert repeated.json()["run_id"] == allowed[3].json()["run_id"]
    assert deeper.status_code == 202
    assert len(await runs_of()) == 6


async def test_hourly_limit_is_free_again_an_hour_later(analyse, owner, account):
    await owner.execute("update accounts set plan = 'free' where id = $1", account)
    for number in range(5):
        await analyse(f"profile{number}", type="light")
    await owner.execute(
        """
        update runs set created_at = created_at - interval '59 minutes 50 seconds'
        where account_id = $1 and subject ->> 'username' = 'profile0'
        """,
        account,
    )

    soon = await analyse(type="light")
    await owner.execute(
        "update runs set created_at = created_at - interval '10 seconds' where account_id = $1", account
    )

    assert 1 <= int(soon.headers["retry-after"]) <= 10
    assert (await analyse(type="light")).status_code == 202


async def test_concurrent_starts_do_not_exceed_the_hourly_limit(analyse, owner, account, runs_of):
    await owner.execute("update accounts set plan = 'free' where id = $1", account)

    answers = await asyncio.gather(*(analyse(f"profile{number}", type="light") for number in range(12)))

    assert sorted(answer.status_code for answer in answers) == [202] * 5 + [429] * 7
    assert len(await runs_of()) == 5


async def test_viewer_cannot_start(analyse, client, owner, account, bearer, runs_of):
    viewer = bearer()
    user_id = uuid.UUID((await client.get("/v1/me", headers=viewer)).json()["id"])
    await owner.execute(
        "insert into memberships (account_id, user_id, role) values ($1, $2, 'viewer')", account, user_id
    )

    refused = await analyse(sender={**viewer, "Oslira-Account": str(account)})

    assert_problem(refused, 403, "permission_missing")
    assert await runs_of() == []
