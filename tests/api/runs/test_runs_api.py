"""Runs over HTTP: response, access, lists and cancellation."""

import uuid

import pytest

from features.runs.domain.refunds import REFUND_POLICIES
from features.runs.domain.run import RunEnd
from tests.api.runs.conftest import DONE, FAILED, RUNS
from tests.integration.database.rows import NEW_SCRAPE
from tests.support.problems import assert_problem


async def test_queued_run_shows_its_queue_place_and_hold(get, book):
    run = await book.queued()

    answer = await get(run.id)

    shown = answer.json()
    assert answer.status_code == 200
    assert (shown["run_id"], shown["kind"], shown["status"]) == (str(run.id), "deep_analysis", "queued")
    assert (shown["credits_held"], shown["credits_charged"]) == (5, 0)
    assert shown["queue"]["position"] >= 0
    assert shown["eta_s"] == shown["queue"]["starts_in_s"] + 30
    assert (shown["subject"], shown["is_live"], shown["refund"]) == ({"username": "ada"}, True, None)
    assert answer.headers["retry-after"] == "2"
    assert answer.headers["cache-control"] == "private, no-cache"


async def test_queue_position_counts_the_accounts_runs_and_the_engine_queue(get, book, owner):
    await owner.execute("update accounts set plan = 'free' where id = $1", book.account_id)
    queue = uuid.uuid4().hex
    first, second, third = [await book.queued(queue=queue) for _ in range(3)]

    places = [(await get(run.id)).json()["queue"]["position"] for run in (first, second, third)]

    assert places == [0, 1, 2]  # the free plan admits one run to the engine's queue


async def test_running_run_shows_progress_and_eta(get, book):
    kind = f"kind_{uuid.uuid4().hex[:8]}"
    done = await book.begun(kind=kind)
    await book.runs.progress(done, 10, step="scrape")
    await book.runs.progress(done, 40, step="core")
    await book.runs.finish(done, DONE)
    run = await book.begun(kind=kind)
    await book.runs.progress(run, 40, step="core")

    shown = (await get(run.id)).json()

    assert (shown["status"], shown["progress"], shown["current_step"]) == ("processing", 40, "core")
    assert [step["step"] for step in shown["steps"]] == ["core"]
    assert shown["eta_s"] == 1  # rounded up
    assert shown["queue"] is None


async def test_ended_run_shows_its_charge_and_refund(get, book):
    run = await book.ended(RunEnd(status="failed", outcome="private", error="private"))

    answer = await get(run.id)

    shown = answer.json()
    assert (shown["status"], shown["outcome"], shown["error"], shown["eta_s"]) == (
        "failed",
        "private",
        "private",
        None,
    )
    assert shown["refund"] == {
        "policy_version": 1,
        "percent_charged": 0,
        "explanation": "The profile is private and could not be analysed.",
    }
    assert shown["result_url"] is None
    assert "retry-after" not in answer.headers


async def test_result_url_is_set_once_the_result_exists(get, book):
    single, bulk = await book.begun(), await book.begun(kind="bulk_analysis", credits_held=0)
    assert (await get(single.id)).json()["result_url"] is None
    assert (await get(bulk.id)).json()["result_url"] == f"/v1/analyses/bulk/{bulk.id}"

    await book.runs.finish(single, DONE)

    assert (await get(single.id)).json()["result_url"] == f"/v1/analyses/{single.id}"


async def test_parent_run_includes_the_credits_of_its_children(get, book):
    parent = await book.begun(kind="bulk_analysis", credits_held=0, uses_concurrency_slot=False)
    children = [await book.begun(parent_id=parent.id) for _ in range(2)]
    assert (await get(parent.id)).json()["credits_held"] == 10

    await book.runs.finish(children[0], DONE)
    assert (await get(parent.id)).json()["credits_charged"] == 5

    await book.runs.finish(children[1], FAILED)
    await book.runs.finish(parent, RunEnd(status="completed", outcome="completed"))
    shown = (await get(parent.id)).json()
    assert (shown["credits_held"], shown["credits_charged"]) == (10, 5)


@pytest.mark.parametrize("path", ["/{}", "/{}/events", "", "?parent_id={}"])
async def test_provider_costs_are_hidden_from_tenants(client, book, owner, path):
    parent = await book.begun(kind="bulk_analysis", credits_held=0, uses_concurrency_slot=False)
    child = await book.begun(parent_id=parent.id)
    await owner.execute(NEW_SCRAPE, book.account_id, child.id)
    await book.runs.finish(child, DONE)
    await book.runs.finish(parent, RunEnd(status="completed", outcome="completed"))

    answer = await client.get(f"{RUNS}{path.format(parent.id)}", headers=book.headers)

    assert answer.status_code == 200
    assert '"status":"completed"' in answer.text
    assert "cost" not in answer.text


async def test_run_of_another_account_is_not_found(client, make_book, book):
    run, other = await book.queued(), await make_book()
    for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/retry")):
        answers = [
            await client.request(method, f"{RUNS}/{run_id}{path}", headers=other.headers)
            for run_id in (run.id, uuid.uuid4())
        ]
        theirs, unknown = [
            answer.content.replace(answer.headers["x-request-id"].encode(), b"") for answer in answers
        ]

        assert_problem(answers[0], 404, "run_not_found")
        assert theirs == unknown


async def test_an_api_key_sees_its_accounts_runs(client, book):
    run = await book.queued()
    made = await client.post(
        "/v1/api-keys", headers=book.headers, json={"name": "k", "scopes": ["runs:read"]}
    )
    key = {"Authorization": f"Bearer {made.json()['key']}"}

    assert (await client.get(f"{RUNS}/{run.id}", headers=key)).status_code == 200
    assert (await client.get(RUNS, headers=key)).json()["items"][0]["run_id"] == str(run.id)
    assert_problem(await client.post(f"{RUNS}/{run.id}/cancel", headers=key), 403, "scope_missing")


@pytest.fixture
def listed(client, book):
    async def listed(**query):
        answer = await client.get(RUNS, headers=book.headers, params=query)
        assert answer.status_code == 200, answer.text
        return [item["run_id"] for item in answer.json()["items"]]

    return listed


async def test_runs_are_listed_newest_first_and_page_by_page(client, book, listed):
    runs = [str((await book.queued()).id) for _ in range(3)]

    first = await client.get(RUNS, headers=book.headers, params={"limit": 2})
    rest = await listed(limit=2, cursor=first.json()["next_cursor"])

    assert [item["run_id"] for item in first.json()["items"]] + rest == runs[::-1]
    assert await listed() == runs[::-1]


async def test_runs_are_listed_by_status_kind_and_time(book, listed):
    waiting = await book.queued()
    done = await book.ended(kind="light_analysis")

    assert await listed(status="completed") == [str(done.id)]
    assert await listed(kind="deep_analysis") == [str(waiting.id)]
    assert await listed(since=done.created_at.isoformat()) == [str(done.id)]
    assert await listed(until=done.created_at.isoformat()) == [str(waiting.id)]
    assert await listed(kind="light_analysis", status="queued") == []


async def test_children_are_listed_only_by_parent_id(book, make_book, client, listed):
    parent = await book.queued(kind="bulk_analysis", credits_held=0)
    child = await book.queued(parent_id=parent.id)
    other = await make_book()

    assert await listed() == [str(parent.id)]
    assert await listed(parent_id=str(parent.id)) == [str(child.id)]
    theirs = await client.get(RUNS, headers=other.headers, params={"parent_id": str(parent.id)})
    assert theirs.json() == {"items": [], "next_cursor": None}


async def test_cancelling_a_queued_run_is_immediate_and_idempotent(client, book):
    run = await book.queued()

    answers = [await client.post(f"{RUNS}/{run.id}/cancel", headers=book.headers) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.json()["outcome"] for answer in answers] == ["cancelled_queued"] * 2
    assert answers[1].json()["refund"]["percent_charged"] == 0


async def test_cancelling_a_running_run_is_a_request_and_the_first_end_counts(client, book):
    run = await book.begun()

    asked = [await client.post(f"{RUNS}/{run.id}/cancel", headers=book.headers) for _ in range(2)]
    await book.runs.finish(run, DONE)
    late = await client.post(f"{RUNS}/{run.id}/cancel", headers=book.headers)

    assert [answer.status_code for answer in asked] == [202, 202]
    assert [answer.json()["should_cancel"] for answer in asked] == [True, True]
    assert (late.status_code, late.json()["status"]) == (200, "completed")


async def test_live_progress_ends_an_hour_after_the_run(get, book, owner, live):
    run = await book.ended()
    assert (await get(run.id)).json()["is_live"] is True
    assert live.find(str(run.id))

    await owner.execute("update runs set ended_at = now() - interval '61 minutes' where id = $1", run.id)

    for _ in range(2):
        answer = await get(run.id)
        assert answer.json()["is_live"] is False
        assert live.find(str(run.id)) is None
    assert (await get(run.id, {"If-None-Match": answer.headers["etag"]})).status_code == 304


async def test_refund_policy_is_public(client):
    answer = await client.get("/v1/refund-policy")

    shown = answer.json()
    assert (answer.status_code, shown["current_version"]) == (200, 2)
    assert [policy["version"] for policy in shown["policies"]] == list(REFUND_POLICIES)
    assert {rule["outcome"]: rule["percent_charged"] for rule in shown["policies"][0]["rules"]} == {
        rule.outcome: rule.percent_charged for rule in REFUND_POLICIES[1].rules
    }
