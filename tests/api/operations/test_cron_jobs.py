"""Operator API for cron jobs."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from features.operations.domain.jobs import Report
from infrastructure.database.operations.cron import PostgresCron
from tests.support.cron_jobs import JOBS

PATH = "/v1/admin/cron"


def rounded(instant):
    return instant.replace(microsecond=0, minute=0, second=0).isoformat().replace("+00:00", "Z")


@pytest.fixture
def run(client, operator):
    async def send(job="cache-expiry", body=None, **headers):
        return await client.post(f"{PATH}/{job}/run", headers={**operator, **headers}, json=body or {})

    return send


async def test_job_list_contains_next_due_time_and_last_run(client, operator, run, owner, database):
    asked = (await run("progress-expiry")).json()
    cron = PostgresCron(database.admin("tests"))
    await owner.execute("select traffic.register_worker($1, 'here', '{}')", asked["id"])
    _, begun = await cron.begin(
        "progress-expiry", datetime.fromisoformat(asked["slot"]), executor=asked["id"], attempts_max=1
    )
    await cron.finish(begun, Report(counts={"requests": 2}), error=None)

    jobs = {job["name"]: job for job in (await client.get(PATH, headers=operator)).json()["items"]}

    assert list(jobs) == list(JOBS)
    job = jobs["progress-expiry"]
    due_in = datetime.fromisoformat(job["next_due_at"]) - datetime.now(UTC)
    assert timedelta(0) < due_in <= timedelta(minutes=30)
    assert (job["schedule"], job["missed"]) == ("*/30 * * * *", "skip")
    assert (job["last_run"]["id"], job["last_run"]["status"]) == (asked["id"], "completed")
    assert job["last_run"]["counts"] == {"requests": 2}
    assert job["last_run"]["duration_ms"] >= 0


async def test_requested_run_is_accepted_and_readable(client, operator, run):
    answer = await run(body={"dry_run": True})
    asked = answer.json()
    found = await client.get(f"{PATH}/cache-expiry/runs/{asked['id']}", headers=operator)

    assert answer.status_code == 202
    assert found.json() == asked
    assert (asked["status"], asked["trigger"], asked["dry_run"]) == ("queued", "operator", True)


async def test_request_with_the_same_idempotency_key_returns_the_same_run(run):
    key = {"Idempotency-Key": uuid.uuid4().hex}

    first, second = await run(**key), await run(**key)

    assert first.json() == second.json()
    assert second.headers["Idempotency-Replayed"] == "true"


async def test_slot_is_executed_once(run):
    slot = rounded(datetime.now(UTC) - timedelta(days=3))

    first, second = await run(body={"slot": slot}), await run(body={"slot": slot})

    assert first.json()["id"] == second.json()["id"]
    assert first.json()["slot"] == slot


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"slot": "2999-01-01T00:00:00Z"}, "slot_not_due"),
        ({"slot": "2026-01-01T00:00:00Z", "dry_run": True}, "slot_of_dry_run"),
    ],
)
async def test_slot_that_cannot_run_is_rejected(run, body, code):
    answer = await run(body=body)

    assert (answer.status_code, answer.json()["code"]) == (422, code)


@pytest.mark.parametrize("job", ["no-such-job", "a%00b", "cache-expiry%20"])
async def test_unknown_job_is_not_found(client, operator, run, job):
    answers = [await run(job), await client.get(f"{PATH}/{job}/runs", headers=operator)]

    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(404, "job_unknown")}


async def test_run_of_another_job_is_not_found(client, operator, run):
    asked = (await run()).json()

    answer = await client.get(f"{PATH}/lot-expiry/runs/{asked['id']}", headers=operator)

    assert (answer.status_code, answer.json()["code"]) == (404, "cron_run_not_found")


async def test_history_is_paginated_by_cursor(client, operator, run):
    ids = [(await run("lot-expiry")).json()["id"] for _ in range(3)]
    found, cursor = [], None
    while len(found) < 3:
        page = await client.get(
            f"{PATH}/lot-expiry/runs",
            headers=operator,
            params={"limit": 2} | ({"cursor": cursor} if cursor else {}),
        )
        found += [one["id"] for one in page.json()["items"]]
        cursor = page.json()["next_cursor"]

    assert found[:3] == ids[::-1]
