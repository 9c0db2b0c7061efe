"""End-to-end tests of the credits slice: the real application and database over HTTP."""

import asyncio
import csv
import io
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.sql_ledger import SqlLedger


@pytest.fixture
def operator(bearer):
    return bearer("operator@example.com", is_operator=True)


@pytest.fixture
async def signed_up(client, bearer):
    """Headers of a new user and the id of the user's account."""
    headers = bearer()
    answer = await client.get("/v1/credits/balance", headers=headers)
    return headers, answer.json()["account_id"]


def admin(account_id, noun):
    return f"/v1/admin/accounts/{account_id}/credits/{noun}"


async def move(client, operator, account_id, noun, **body):
    body.setdefault("reference", f"test:{uuid.uuid4()}")
    return await client.post(admin(account_id, noun), headers=operator, json=body)


@pytest.fixture
def ledger(database):
    return SqlLedger(database.admin("test"))


async def test_first_request_of_a_user_creates_an_account_with_the_bonus(client, bearer):
    answer = await client.get("/v1/credits/balance", headers=bearer())

    assert answer.status_code == 200
    assert (answer.json()["credits_available"], answer.json()["credits_held"]) == (25, 0)


async def test_many_first_requests_at_once_make_one_account_and_one_bonus(client, bearer):
    headers = bearer()

    answers = await asyncio.gather(*(client.get("/v1/credits/balance", headers=headers) for _ in range(32)))

    assert {answer.json()["account_id"] for answer in answers} == {answers[0].json()["account_id"]}
    statement = await client.get("/v1/credits/transactions", headers=headers)
    assert [item["transaction_type"] for item in statement.json()["items"]] == ["signup_bonus"]


async def test_a_hold_and_its_settlement_show_in_balance_and_statement(client, ledger, signed_up):
    headers, account_id = signed_up

    await ledger.place_hold(account_id, 5, "run:1")
    held = (await client.get("/v1/credits/balance", headers=headers)).json()
    await ledger.settle_hold(account_id, "run:1", 3)
    settled = (await client.get("/v1/credits/balance", headers=headers)).json()

    assert (held["credits_available"], held["credits_held"]) == (20, 5)
    assert (settled["credits_available"], settled["credits_held"]) == (22, 0)
    statement = (await client.get("/v1/credits/transactions", headers=headers)).json()["items"]
    assert [(item["kind"], item["credits_delta"], item["balance_after"]) for item in statement] == [
        ("settle", 2, 22),
        ("hold", -5, 20),
        ("grant", 25, 25),
    ]


async def test_repeated_ledger_operation_is_idempotent(client, operator, signed_up):
    headers, account_id = signed_up

    first = await move(client, operator, account_id, "grants", credits=5, reference="again")
    second = await move(client, operator, account_id, "grants", credits=5, reference="again")

    assert (first.json()["repeated"], second.json()["repeated"]) == (False, True)
    balance = (await client.get("/v1/credits/balance", headers=headers)).json()
    assert balance["credits_available"] == 30


@pytest.mark.parametrize(
    ("noun", "body", "status", "code"),
    [
        ("adjustments", {"credits": -31, "reason": "x"}, 402, "insufficient_credits"),
        ("grants", {"credits": 6, "reference": "taken"}, 409, "reference_reused"),
        ("grants", {"credits": 1, "transaction_type": "no_such_type"}, 422, "transaction_type_invalid"),
        ("grants", {"credits": 1, "transaction_type": "analysis"}, 422, "transaction_type_invalid"),
    ],
)
async def test_invalid_ledger_operation_is_rejected_by_name_and_changes_nothing(
    client, operator, signed_up, noun, body, status, code
):
    headers, account_id = signed_up
    await move(client, operator, account_id, "grants", credits=5, reference="taken")
    before = (await client.get("/v1/credits/balance", headers=headers)).json()

    answer = await move(client, operator, account_id, noun, **body)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (await client.get("/v1/credits/balance", headers=headers)).json() == before


async def test_insufficient_credits_tells_how_many_are_missing(client, operator, signed_up):
    _, account_id = signed_up

    answer = await move(client, operator, account_id, "adjustments", credits=-100, reason="x")

    assert answer.json()["facts"] == {"needed": 100, "available": 25}


async def test_an_unknown_account_is_not_found_for_an_operator(client, operator):
    answer = await move(client, operator, uuid.uuid4(), "grants", credits=1)

    assert (answer.status_code, answer.json()["code"]) == (404, "account_not_found")


@pytest.mark.parametrize("noun", ["grants", "adjustments"])
async def test_members_may_not_move_credits_by_hand(client, signed_up, noun):
    headers, account_id = signed_up

    answer = await client.post(admin(account_id, noun), headers=headers, json={})

    assert (answer.status_code, answer.json()["code"]) == (403, "operators_only")


@pytest.mark.parametrize("path", ["balance", "transactions", "transactions.csv"])
async def test_account_of_another_tenant_is_not_found(client, bearer, signed_up, path):
    _, account_id = signed_up
    stranger = bearer()
    url = f"/v1/credits/{path}"

    foreign = await client.get(url, headers={**stranger, "Oslira-Account": account_id})
    unknown = await client.get(url, headers={**stranger, "Oslira-Account": str(uuid.uuid4())})

    assert foreign.status_code == unknown.status_code == 404
    assert {**foreign.json(), "request_id": ""} == {**unknown.json(), "request_id": ""}


@pytest.mark.parametrize("path", ["balance", "balance?at=2026-01-01T00:00:00Z", "transactions"])
async def test_a_member_of_two_accounts_has_to_choose(client, owner, signed_up, tenant, path):
    headers, account_id = signed_up
    user_id = await owner.fetchval(
        "select user_id from memberships where account_id = $1", uuid.UUID(account_id)
    )
    await owner.execute("insert into memberships values ($1, $2, 'member')", tenant.account_id, user_id)

    unclear = await client.get(f"/v1/credits/{path}", headers=headers)
    chosen = await client.get(
        f"/v1/credits/{path}", headers={**headers, "Oslira-Account": str(tenant.account_id)}
    )

    assert (unclear.status_code, unclear.json()["code"]) == (422, "account_not_chosen")
    assert chosen.status_code == 200


async def test_pages_follow_each_other_without_gap_or_repetition(client, operator, signed_up):
    headers, account_id = signed_up
    for number in range(5):
        await move(client, operator, account_id, "grants", credits=1, reference=f"g{number}")

    seen, cursor = [], ""
    while cursor is not None:
        query = f"?limit=2&cursor={cursor}" if cursor else "?limit=2"
        page = (await client.get(f"/v1/credits/transactions{query}", headers=headers)).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]

    assert seen == [6, 5, 4, 3, 2, 1]


async def test_a_statement_can_be_narrowed_by_kind_and_time(client, ledger, signed_up):
    headers, account_id = signed_up
    await ledger.place_hold(account_id, 5, "h")
    everything = (await client.get("/v1/credits/transactions", headers=headers)).json()["items"]
    hold, bonus = everything

    async def ids(**query):
        answer = await client.get("/v1/credits/transactions", headers=headers, params=query)
        return [item["id"] for item in answer.json()["items"]]

    assert await ids(kind="hold") == [hold["id"]]
    assert await ids(since=hold["created_at"]) == [hold["id"]]
    assert await ids(until=hold["created_at"]) == [bonus["id"]]
    assert await ids(kind="refund") == []
    assert await ids(until="2020-01-01T00:00:00Z") == []
    assert await ids(since="2099-01-01T00:00:00Z") == []


async def test_the_balance_as_of_a_time_is_what_the_ledger_had_then(client, ledger, signed_up):
    headers, account_id = signed_up
    (bonus,) = (await client.get("/v1/credits/transactions", headers=headers)).json()["items"]
    await ledger.place_hold(account_id, 5, "h")

    async def balance_at(at):
        answer = (await client.get("/v1/credits/balance", headers=headers, params={"at": at})).json()
        return answer["credits_available"], answer["credits_held"]

    assert await balance_at("2020-01-01T00:00:00Z") == (0, 0)
    assert await balance_at(bonus["created_at"]) == (25, 0)
    assert await balance_at((datetime.now(UTC) + timedelta(minutes=1)).isoformat()) == (20, 5)


async def test_the_statement_as_csv_has_every_entry_and_runs_no_formula(client, operator, signed_up):
    headers, account_id = signed_up
    await move(client, operator, account_id, "grants", credits=2, reference="=cmd()", description="@x")

    answer = await client.get("/v1/credits/transactions.csv", headers=headers)

    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert answer.headers["content-type"].startswith("text/csv")
    assert [(row["kind"], row["credits_delta"]) for row in rows] == [("grant", "2"), ("grant", "25")]
    assert (rows[0]["reference"], rows[0]["description"]) == ("'=cmd()", "'@x")


async def test_expired_grant_is_not_in_the_balance_before_the_expiry_job(client, operator, signed_up):
    headers, account_id = signed_up
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()

    await move(client, operator, account_id, "grants", credits=7, expires_at=past)

    assert (await client.get("/v1/credits/balance", headers=headers)).json()["credits_available"] == 25


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=x", "kind=nothing", "since=yesterday", "cursor=!!!", "cursor=70313878"],
)
async def test_a_bad_query_is_refused_with_a_reason(client, bearer, query):
    answer = await client.get(f"/v1/credits/transactions?{query}", headers=bearer())

    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("invalid_request", "cursor_invalid")
    assert answer.json()["detail"]


async def test_adjustment_is_applied_once_and_has_a_reason(client, operator, signed_up):
    headers, account_id = signed_up
    answers = [
        await move(client, operator, account_id, "adjustments", credits=number, reference=key, reason="!")
        for number, key in ((7, "a:1"), (-30, "a:2"), (-30, "a:2"))
    ]

    assert [answer.json()["repeated"] for answer in answers] == [False, False, True]
    assert answers[-1].json()["credits_available"] == 2
    statement = (await client.get("/v1/credits/transactions", headers=headers)).json()["items"]
    assert [(item["transaction_type"], item["description"]) for item in statement[:2]] == [
        ("admin_charge", "!"),
        ("admin_grant", "!"),
    ]


@pytest.mark.parametrize(
    ("credits_delta", "reason", "status"),
    [(-26, "more than there is", 402), (0, "nothing", 422), (1, " ", 400), (1, None, 400)],
)
async def test_invalid_adjustment_is_rejected(client, operator, signed_up, credits_delta, reason, status):
    body = {"credits": credits_delta} | ({"reason": reason} if reason else {})

    answer = await move(client, operator, signed_up[1], "adjustments", **body)

    assert answer.status_code == status


async def test_operator_can_audit_the_ledger(client, operator, signed_up, owner):
    account_id = uuid.UUID(signed_up[1])
    add = "update credit_accounts set credits_available = credits_available + $2 where account_id = $1"
    await owner.execute(add, account_id, 1)

    wrong = (await client.post("/v1/admin/audits", headers=operator)).json()
    await owner.execute(add, account_id, -1)

    assert not wrong["ok"]
    assert {one["account_id"] for one in wrong["findings"]} >= {str(account_id)}
