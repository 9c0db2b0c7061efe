"""Retries of analyses: the same rules as for a first start."""

import uuid

import pytest

from tests.support.problems import assert_problem

RUNS = "/v1/runs"


@pytest.fixture
def cancelled(client, headers):
    """A function that cancels the queued run of a start response and returns the run's id."""

    async def cancel(started):
        run_id = started.json()["run_id"]
        answer = await client.post(f"{RUNS}/{run_id}/cancel", headers=headers)
        assert answer.json()["status"] == "cancelled"
        return run_id

    return cancel


@pytest.fixture
def retry(client, headers):
    """A function that retries a run."""

    async def send(run_id, sender=None, **extra):
        return await client.post(f"{RUNS}/{run_id}/retry", headers={**(sender or headers), **extra})

    return send


@pytest.mark.parametrize("kind", ["single", "bulk"])
async def test_test_key_cannot_retry(analyse, bulk, cancelled, retry, key, runs_of, credits_of, kind):
    tried = await cancelled(await (analyse() if kind == "single" else bulk("natgeo", "nasa")))
    sender, _ = await key(mode="test")

    assert_problem(await retry(tried, sender), 403, "test_key_never_spends")
    assert len(await runs_of()) == 1
    assert await credits_of() == (25, 0)


async def test_test_key_cannot_retry_while_an_equal_run_is_in_progress(analyse, cancelled, retry, key):
    tried = await cancelled(await analyse())
    await analyse()
    sender, _ = await key(mode="test")

    assert_problem(await retry(tried, sender), 403, "test_key_never_spends")


async def test_retries_count_against_the_hourly_limit(analyse, cancelled, retry, owner, account, runs_of):
    await owner.execute("update accounts set plan = 'free' where id = $1", account)
    tried = await cancelled(await analyse(type="light"))
    for _ in range(4):
        tried = await cancelled(await retry(tried))

    refused = [await retry(tried), await analyse("nasa", type="light")]

    for answer in refused:
        assert_problem(answer, 429, "light_limit_reached")
        assert answer.json()["facts"] == {"limit": 5}
        assert 3_500 < int(answer.headers["retry-after"]) <= 3_600
    assert len(await runs_of()) == 5


async def test_a_repeated_retry_is_the_same_run_at_the_hourly_limit(
    analyse, cancelled, retry, owner, account, runs_of
):
    await owner.execute("update accounts set plan = 'free' where id = $1", account)
    for number in range(4):
        tried = await cancelled(await analyse(f"profile{number}", type="light"))
    last = await retry(tried)

    again = await retry(tried)  # an equal run is in progress

    assert (again.status_code, again.json()["run_id"]) == (202, last.json()["run_id"])
    assert len(await runs_of()) == 5


@pytest.mark.parametrize("kind", ["single", "bulk"])
async def test_a_run_of_a_deleted_business_is_not_retried(
    client, analyse, bulk, cancelled, retry, headers, business, runs_of, credits_of, kind
):
    tried = await cancelled(await (analyse() if kind == "single" else bulk("natgeo", "nasa")))
    await client.delete(f"/v1/business-profiles/{business}", headers=headers)

    assert_problem(await retry(tried), 404, "business_profile_not_found")
    assert len(await runs_of()) == 1
    assert await credits_of() == (25, 0)


async def test_a_retry_repeats_the_items_of_a_bulk_that_was_cancelled_while_queued(
    client, bulk, cancelled, retry, headers
):
    tried = await cancelled(await bulk("natgeo", "no name", "nasa"))
    idempotency = {"Idempotency-Key": uuid.uuid4().hex}

    answers = [await retry(tried, **idempotency) for _ in range(2)]

    run_id = answers[0].json()["run_id"]
    assert [answer.json()["run_id"] for answer in answers] == [run_id, run_id]
    page = (await client.get(f"/v1/analyses/bulk/{run_id}", headers=headers)).json()
    assert [(item["position"], item["username"], item["status"]) for item in page["items"]] == [
        (1, "natgeo", "waiting"),
        (3, "nasa", "waiting"),
    ]
    assert [(row["position"], row["code"]) for row in page["rejected"]] == [(2, "username_invalid")]


async def test_a_retried_bulk_whose_first_item_cannot_be_paid_is_rejected(
    bulk, cancelled, retry, owner, account, runs_of
):
    tried = await cancelled(await bulk("natgeo", "nasa"))
    await owner.fetchval("select (deduct_credits($1, -25, 'analysis', 'spent')).outcome", account)

    assert_problem(await retry(tried), 402, "insufficient_credits")
    assert len(await runs_of()) == 1


async def test_run_is_not_retried_with_a_key_revoked_after_authentication(
    account, cancelled, analyse, key, owner, runs_of
):
    tried = await cancelled(await analyse())
    _, key_id = await key()
    await owner.execute("update api_keys set revoked_at = now() where id = $1", key_id)
    arguments = (account, uuid.UUID(tried), uuid.uuid4(), key_id)

    statement = "select (result).outcome from runs.retry($1, $2, $3, null, $4, 1)"
    outcome = await owner.fetchval(statement, *arguments)

    assert outcome == "unknown_key"
    assert len(await runs_of()) == 1
