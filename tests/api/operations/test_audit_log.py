"""Audit entries: every request of an operator is recorded before it is handled, on every route."""

import hashlib
import json
import re
import uuid
from dataclasses import dataclass

import pytest

from shared.errors import Unavailable
from shared.middleware.audit_log import AuditRecorder

GRANT = {"credits": 5, "reference": "ticket:1", "description": "A gift"}
SHOW_NO_TENANT = {"listCronJobs", "listCronRuns", "getCronRun"}


@pytest.fixture
async def document(client):
    return (await client.get("/schema/openapi.json")).json()


@pytest.fixture
def entries(client, operator):
    """Finds the newest audit entries, without those of the search itself."""

    async def find(**only):
        answer = await client.get("/v1/admin/audit-log", headers=operator, params={"limit": 200, **only})
        return [entry for entry in answer.json()["items"] if entry["operation"] != "listAuditLog"]

    return find


@pytest.fixture
def grant(client, operator, account_id):
    async def send(body=None, **headers):
        url = f"/v1/admin/accounts/{account_id}/credits/grants"
        return await client.post(url, headers={**operator, **headers}, json=GRANT if body is None else body)

    return send


async def test_audit_entry_has_the_operation_path_reason_and_body_hash(entries, grant, account_id):
    answer = await grant()

    (entry,) = await entries(account_id=account_id)
    assert (entry["operation"], entry["method"], entry["status"]) == ("grantCredits", "POST", 200)
    assert entry["path"] == f"/v1/admin/accounts/{account_id}/credits/grants"
    assert entry["reason"] == "A gift"
    assert entry["request_id"] == answer.headers["X-Request-Id"]
    sent = answer.request.content
    assert entry["body_sha256"] == hashlib.sha256(sent).hexdigest()
    assert json.loads(sent) == GRANT
    assert entry["ended_at"] > entry["at"]


async def test_every_operator_route_is_recorded_without_its_own_code(client, operator, entries, document):
    asked = []
    for path, methods in document["paths"].items():
        for method, documented in methods.items():
            if documented["x-access"] != "operators_only" or documented["operationId"] in SHOW_NO_TENANT:
                continue
            url = re.sub(r"\{\w+\}", str(uuid.uuid4()), path)
            answer = await client.request(method, url, headers=operator)
            asked.append((documented["operationId"], answer.headers["X-Request-Id"], answer.status_code))

    written = {(entry["operation"], entry["request_id"], entry["status"]) for entry in await entries()}
    listed = [one for one in asked if one[0] == "listAuditLog"]
    assert set(asked) - set(listed) <= written
    assert len(asked) >= 15
    assert len(listed) == 1


async def test_only_reads_without_tenant_data_are_not_recorded(document):
    unwritten = {
        (method, documented["operationId"])
        for methods in document["paths"].values()
        for method, documented in methods.items()
        if documented["operationId"] in SHOW_NO_TENANT
    }

    assert unwritten == {("get", operation) for operation in SHOW_NO_TENANT}


async def test_audit_entry_of_a_rejected_request_has_its_problem_code(entries, grant, account_id):
    await grant({"credits": 0, "reference": "r"})
    await grant(GRANT, **{"Idempotency-Key": "too short"})
    await grant({**GRANT, "transaction_type": "analysis"})

    assert [(entry["status"], entry["code"]) for entry in await entries(account_id=account_id)] == [
        (422, "transaction_type_invalid"),
        (422, "idempotency_key_invalid"),
        (400, "invalid_request"),
    ]


async def test_each_repeated_request_has_its_own_audit_entry(entries, grant, account_id):
    key = {"Idempotency-Key": uuid.uuid4().hex}

    await grant(**key)
    await grant(**key)

    assert [entry["status"] for entry in await entries(account_id=account_id)] == [200, 200]


@pytest.mark.parametrize(
    ("reason", "written"), [("with\0nul", "with nul"), ("x" * 600, "x" * 500), (7, None), ("", None)]
)
async def test_reason_is_cleaned_and_truncated(entries, grant, account_id, reason, written):
    await grant({**GRANT, "description": reason})

    (entry,) = await entries(account_id=account_id)
    assert entry["reason"] == written


async def test_request_without_the_operator_role_leaves_no_audit_entry(client, bearer, entries, account_id):
    url = f"/v1/admin/accounts/{account_id}/credits/grants"

    answer = await client.post(url, headers=bearer(), json=GRANT)

    assert answer.status_code == 403
    assert await entries(account_id=account_id) == []


class NoBook(Unavailable):
    code = "no_book"
    text = "Not available."


@dataclass
class Book:
    fails: str

    async def begin(self, entry):
        del entry
        if self.fails == "begin":
            raise NoBook

    async def end(self, act_id, *, status, code):
        del act_id, status, code
        raise NoBook


@pytest.fixture
def with_book(application, client_of):
    def make(fails):
        return client_of(application.replacing(audit_recorder=AuditRecorder(Book(fails))))

    return make


@pytest.mark.parametrize(("fails", "status", "granted"), [("begin", 503, 0), ("end", 200, 5)])
async def test_request_that_cannot_be_recorded_is_not_handled(
    with_book, operator, owner, account_id, fails, status, granted
):
    before = await available(owner, account_id)
    url = f"/v1/admin/accounts/{account_id}/credits/grants"

    answer = await with_book(fails).post(url, headers=operator, json=GRANT)

    assert answer.status_code == status
    assert await available(owner, account_id) - before == granted


async def available(owner, account_id):
    return await owner.fetchval(
        "select credits_available from credit_accounts where account_id = $1", uuid.UUID(account_id)
    )


async def test_audit_entries_are_found_by_operator_and_operation_in_pages(client, bearer, account_id):
    other = bearer(f"{uuid.uuid4().hex}@example.com", is_operator=True)
    url = f"/v1/admin/accounts/{account_id}/credits/grants"
    for number in range(3):
        await client.post(url, headers=other, json={**GRANT, "reference": f"r:{number}"})
    me = (await client.get("/v1/me", headers=other)).json()["id"]
    only = {"operator_id": me, "operation": "grantCredits", "limit": 2}

    first = (await client.get("/v1/admin/audit-log", headers=other, params=only)).json()
    rest = await client.get(
        "/v1/admin/audit-log", headers=other, params={**only, "cursor": first["next_cursor"]}
    )

    times = [entry["at"] for entry in first["items"] + rest.json()["items"]]
    assert len(times) == 3
    assert times == sorted(times, reverse=True)
    assert rest.json()["next_cursor"] is None


async def test_audit_entries_cannot_be_changed_or_deleted(database, grant):
    await grant()
    session = database.admin("tests")

    for statement in (
        "update public.audit_log set reason = 'another'",
        "update public.audit_log set operator_id = gen_random_uuid()",
        "delete from public.audit_log",
    ):
        with pytest.raises(Exception, match="permission denied"):
            await session.fetch(statement)
