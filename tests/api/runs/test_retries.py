"""Retries of failed and cancelled runs: completed steps are reused, and the price is charged once."""

import asyncio
import uuid

import pytest

from features.runs.domain.run import RunEnd
from tests.api.runs.conftest import DONE, FAILED, RUNS
from tests.support.problems import assert_problem

STEP = """
insert into dbos.operation_outputs (workflow_uuid, function_id, function_name, output, serialization,
    started_at_epoch_ms, completed_at_epoch_ms)
values ($1, $2, $3, $4, 'portable_json', $5, $6)
"""


@pytest.fixture
def retry(client, book):
    async def retry(run_id, **headers):
        return await client.post(f"{RUNS}/{run_id}/retry", headers={**book.headers, **headers})

    return retry


@pytest.fixture
def kept(owner):
    """Returns a function that reads the engine's stored steps of a run."""

    async def kept(run_id):
        rows = await owner.fetch(
            "select function_id, function_name, output, serialization from dbos.operation_outputs"
            " where workflow_uuid = $1 order by function_id",
            str(run_id),
        )
        return [tuple(row) for row in rows]

    return kept


async def credits_of(owner, book):
    return tuple(
        await owner.fetchrow(
            "select credits_available, credits_held from credit_accounts where account_id = $1",
            book.account_id,
        )
    )


async def test_retry_of_a_failed_run_is_a_new_run_charged_once(owner, book, retry, get):
    tried = await book.ended(FAILED)
    assert await credits_of(owner, book) == (100, 0)

    answer = await retry(tried.id)

    assert answer.status_code == 202
    started = answer.json()
    assert started == {
        "run_id": started["run_id"],
        "status": "queued",
        "poll_url": f"{RUNS}/{started['run_id']}",
    }
    assert answer.headers["location"] == started["poll_url"]
    shown = (await get(started["run_id"])).json()
    assert (shown["retry_of"], shown["kind"], shown["subject"]) == (
        str(tried.id),
        tried.kind,
        tried.subject,
    )
    assert await credits_of(owner, book) == (95, 5)

    run = await book.begin(await book.runs.find(book.account_id, uuid.UUID(started["run_id"])))
    await book.runs.finish(run, DONE)
    assert await credits_of(owner, book) == (95, 0)


async def test_cancelled_run_and_its_retry_are_both_charged(owner, book, retry):
    half = RunEnd(status="cancelled", outcome="cancelled_analyzing", credits_charged=2)
    tried = await book.ended(half)

    assert (await retry(tried.id)).status_code == 202
    assert await credits_of(owner, book) == (93, 5)


async def test_successful_steps_are_copied_to_the_retry(owner, book, retry, kept):
    tried = await book.ended(FAILED)
    for step in (
        (1, "scrape", '{"value":{"text":"\\u0000"}}', 0, 10),
        (2, "core", '{"failure":["provider_failure","No."]}', 10, 50),
        (3, "outreach", '{"value":7}', 11, 40),  # in parallel
        (4, "personality", '{"is_cancelled":true}', 11, 60),
        (5, "apology", '{"value":8}', 61, 62),  # after the failure
    ):
        await owner.execute(STEP, str(tried.id), *step)

    started = (await retry(tried.id)).json()

    assert await kept(started["run_id"]) == [
        (1, "scrape", '{"value":{"text":"\\u0000"}}', "portable_json"),
        (3, "outreach", '{"value":7}', "portable_json"),
    ]


async def test_steps_are_copied_when_the_retry_is_admitted(owner, book, retry, kept):
    tried = await book.ended(FAILED)
    await owner.execute(STEP, str(tried.id), 1, "scrape", '{"value":1}', 0, 10)
    await owner.execute("update accounts set plan = 'free' where id = $1", book.account_id)
    first = await book.begun()

    started = (await retry(tried.id)).json()
    assert await kept(started["run_id"]) == []

    await book.runs.finish(first, DONE)
    assert [step[:2] for step in await kept(started["run_id"])] == [(1, "scrape")]


@pytest.mark.parametrize("ended", [True, False])
async def test_running_and_completed_runs_are_not_retryable(owner, book, retry, ended):
    run = await (book.ended() if ended else book.begun())
    before = await credits_of(owner, book)

    assert_problem(await retry(run.id), 409, "run_not_retryable")
    assert await credits_of(owner, book) == before


async def test_run_with_children_is_not_retryable(book, retry):
    parent = await book.begun(kind="bulk_analysis", credits_held=0)
    await book.ended(FAILED, parent_id=parent.id)
    await book.runs.finish(parent, RunEnd(status="failed", outcome="timeout", error="timeout"))

    assert_problem(await retry(parent.id), 409, "run_not_retryable")


async def test_retry_without_credits_is_rejected(owner, book, retry):
    tried = await book.ended(FAILED)
    await owner.execute("select ledger.spend($1, 98, 's', 'admin_charge')", book.account_id)

    answer = await retry(tried.id)

    assert_problem(answer, 402, "insufficient_credits")
    assert answer.json()["facts"] == {"needed": 5, "available": 2}


async def test_retry_by_an_api_key_respects_its_cap(client, owner, book):
    tried = await book.ended(FAILED)
    made = await client.post(
        "/v1/api-keys",
        headers=book.headers,
        json={"name": "k", "scopes": ["runs:write"], "credits_per_month_max": 4},
    )
    key = {"Authorization": f"Bearer {made.json()['key']}"}

    answer = await client.post(f"{RUNS}/{tried.id}/retry", headers=key)

    assert_problem(answer, 402, "api_key_cap_reached")
    assert await credits_of(owner, book) == (100, 0)


async def test_concurrent_retries_with_one_idempotency_key_are_one_run(owner, book, retry):
    tried = await book.ended(FAILED)
    key = {"Idempotency-Key": uuid.uuid4().hex}

    answers = await asyncio.gather(*(retry(tried.id, **key) for _ in range(4)))

    assert {answer.json()["run_id"] for answer in answers} == {answers[0].json()["run_id"]}
    assert await credits_of(owner, book) == (95, 5)


async def test_retry_returns_the_run_in_progress_for_the_same_work(owner, book, retry):
    tried = await book.ended(FAILED, dedup_key="ada")

    answers = [await retry(tried.id) for _ in range(2)]

    assert answers[0].json() == answers[1].json()
    assert await credits_of(owner, book) == (95, 5)
