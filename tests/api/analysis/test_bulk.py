"""Bulk analyses: each row is accepted or rejected, and the run is stored with all rows or not at all."""

import uuid

import pytest

from shared.pagination import encode_position
from tests.support.problems import assert_problem

DRY = "?dry_run=true"


@pytest.fixture
def read(client, headers):
    async def get(run_id, sender=None, **query):
        return await client.get(f"/v1/analyses/bulk/{run_id}", headers=sender or headers, params=query)

    return get


async def rows_of(owner, run_id):
    return [
        tuple(row)
        for row in await owner.fetch(
            "select position, username, status from bulk_items where run_id = $1 order by position",
            uuid.UUID(run_id),
        )
    ]


async def test_valid_rows_are_queued_and_invalid_ones_reported(bulk, owner, runs_of, credits_of):
    answer = await bulk("natgeo", "@NatGeo", "no name", "https://instagram.com/nasa", "", "bad\u0000\u202e")

    assert answer.status_code == 202
    report = answer.json()
    run_id = report["run_id"]
    assert {name: report[name] for name in report if name != "rejected"} == {
        "run_id": run_id,
        "status": "queued",
        "poll_url": f"/v1/runs/{run_id}",
        "accepted_count": 2,
        "credits_estimate": 2,
        "credits_available": 25,
    }
    assert [(row["position"], row["username"], row["code"]) for row in report["rejected"]] == [
        (2, "@NatGeo", "duplicate_in_list"),
        (3, "no name", "username_invalid"),
        (5, "", "username_invalid"),
        (6, "bad\ufffd\ufffd", "username_invalid"),
    ]
    assert report["rejected"][0]["reason"] == "The same as row 1: @natgeo."
    assert answer.headers["location"] == f"/v1/runs/{run_id}"
    assert await rows_of(owner, run_id) == [(1, "natgeo", "waiting"), (4, "nasa", "waiting")]
    assert await credits_of() == (25, 0)
    (run,) = await runs_of(
        "kind, queue, uses_concurrency_slot, credits_held, subject ->> 'count', admitted_at is null"
    )
    assert tuple(run) == ("bulk_analysis", "bulk", False, 0, "2", False)


async def test_dry_run_gives_the_same_report_and_writes_nothing(bulk, runs_of):
    rows = ("natgeo", "no name", "nasa")
    quote = (await bulk(*rows, query=DRY, type="xray")).json()
    report = (await bulk(*rows, type="xray")).json()

    assert quote == {name: report[name] for name in quote}
    assert quote["credits_estimate"] == 12
    assert len(await runs_of()) == 1


async def test_plan_limits_the_number_of_rows(bulk, owner, account, runs_of):
    await owner.execute("update accounts set plan = 'free' where id = $1", account)
    rows = [f"profile{number}" for number in range(6)]

    for query in ("", DRY):
        refused = await bulk(*rows, query=query)
        assert_problem(refused, 422, "bulk_too_large")
        assert refused.json()["facts"] == {"limit": 5, "plan": "free"}
    assert await runs_of() == []
    assert (await bulk(*rows[:5])).status_code == 202


async def test_request_without_valid_rows_starts_no_run(bulk, runs_of):
    refused = await bulk("no name", "neither this")

    assert_problem(refused, 422, "nothing_to_analyse")
    assert refused.json()["facts"] == {"rejected_count": 2, "first_code": "username_invalid"}
    assert await runs_of() == []


@pytest.mark.parametrize(("granted", "status"), [(5, 402), (6, 202)])
async def test_a_bulk_that_cannot_pay_its_first_item_is_rejected(
    bulk, owner, account, runs_of, granted, status
):
    await owner.execute("select ledger.spend($1, 25, 'all', 'admin_charge')", account)
    await owner.execute("select ledger.grant_credits($1, $2, 'g', 'purchase')", account, granted)

    answer = await bulk("natgeo", "nasa", type="xray")

    if status == 402:
        assert_problem(answer, 402, "insufficient_credits")
        assert answer.json()["facts"] == {"needed": 6, "available": 5}
    assert (answer.status_code, len(await runs_of())) == (status, status == 202)


async def test_repeated_start_of_a_bulk_succeeds_without_credits(bulk, owner, account):
    extra = {"Idempotency-Key": str(uuid.uuid4())}
    first = await bulk("natgeo", extra=extra)
    # Simulates a process that died after the start and before the response was stored.
    await owner.execute("update traffic.idempotency_keys set response = null, locked_until = now()")
    await owner.execute("select ledger.spend($1, 25, 'all', 'admin_charge')", account)

    again = await bulk("natgeo", extra=extra)

    assert (again.status_code, again.json()["run_id"]) == (202, first.json()["run_id"])


async def test_five_hundred_rows_are_accepted(bulk, owner, account):
    await owner.execute("update accounts set plan = 'enterprise' where id = $1", account)
    rows = [f"profile{number}" for number in range(501)]

    assert (await bulk(*rows)).status_code == 400
    assert (await bulk(*rows[:500])).json()["accepted_count"] == 500


async def test_one_idempotency_key_is_one_run(bulk, runs_of):
    extra = {"Idempotency-Key": str(uuid.uuid4())}

    first, again = [await bulk("natgeo", "nasa", extra=extra) for _ in range(2)]

    assert first.json() == again.json()
    assert len(await runs_of()) == 1


async def test_a_bulk_run_is_read_page_by_page(bulk, read, business):
    run_id = (await bulk("natgeo", "no name", "nasa", "unesco")).json()["run_id"]

    first = (await read(run_id, limit=2)).json()
    second = (await read(run_id, limit=2, cursor=first["next_cursor"])).json()

    assert [(item["position"], item["username"]) for item in first["items"]] == [(1, "natgeo"), (3, "nasa")]
    assert [item["username"] for item in second["items"]] == ["unesco"]
    assert (first["next_cursor"], second["next_cursor"]) == (encode_position(3), None)
    for page in (first, second):
        assert page["counts"] == {
            "waiting": 3,
            "started": 0,
            "completed": 0,
            "failed": 0,
            "cancelled": 0,
            "skipped": 0,
        }
        assert [row["username"] for row in page["rejected"]] == ["no name"]
        assert (page["type"], page["business_profile_id"], page["status"]) == ("light", business, "queued")


async def test_item_shows_the_state_of_its_own_run_immediately(bulk, read, analyse, owner, account):
    """Independent of what the bulk run has stored so far."""
    run_id = (await bulk("natgeo", "nasa")).json()["run_id"]
    item_run_id = (await analyse("natgeo", type="light")).json()["run_id"]
    await owner.execute(
        "update bulk_items set status = 'started', item_run_id = $2 where run_id = $1 and position = 1",
        *(uuid.UUID(run_id), uuid.UUID(item_run_id)),
    )
    begun = (await read(run_id)).json()["items"][0]
    await owner.execute(
        """
        update runs set status = 'completed', outcome = 'completed', ended_at = now()
        where account_id = $1 and id = $2
        """,
        *(account, uuid.UUID(item_run_id)),
    )

    page = (await read(run_id)).json()

    assert (begun["status"], begun["run_id"], begun["analysis_url"]) == ("started", item_run_id, None)
    assert page["items"][0] == {
        "position": 1,
        "username": "natgeo",
        "status": "completed",
        "outcome": "completed",
        "run_id": item_run_id,
        "analysis_url": f"/v1/analyses/{item_run_id}",
    }
    assert (page["counts"]["completed"], page["counts"]["waiting"]) == (1, 1)


async def test_rows_of_a_run_that_was_cancelled_while_queued_are_cancelled(bulk, read, owner, account):
    run_id = (await bulk("natgeo", "nasa")).json()["run_id"]
    await owner.execute("select runs.request_cancel($1, $2)", account, uuid.UUID(run_id))

    page = (await read(run_id)).json()

    assert page["status"] == "cancelled"
    assert (page["counts"]["cancelled"], page["counts"]["waiting"]) == (2, 0)


async def test_run_that_is_no_bulk_or_of_another_account_is_not_found(bulk, read, analyse, bearer, client):
    run_id = (await bulk("natgeo")).json()["run_id"]
    single = (await analyse()).json()["run_id"]
    stranger = bearer()
    await client.get("/v1/me", headers=stranger)

    assert_problem(await read(single), 404, "bulk_analysis_not_found")
    assert_problem(await read(run_id, stranger), 404, "bulk_analysis_not_found")


async def test_a_bulk_run_belongs_to_the_key_that_started_it(bulk, key, runs_of):
    sender, key_id = await key()

    await bulk("natgeo", sender=sender)

    assert await runs_of("user_id, api_key_id") == [(None, key_id)]
