"""Idempotency keys of POST requests: one effect and equal responses."""

import asyncio
import hashlib
import uuid

import pytest

from core.wiring.application import build
from shared.errors import Unavailable
from shared.middleware import idempotency
from tests.support import until
from tests.support.problems import assert_problem

BODY = {"name": "Once"}


def keyed(key=None):
    return {"Idempotency-Key": key or str(uuid.uuid4())}


async def accounts_of(person):
    return [one["name"] for one in (await person.get("/v1/accounts")).json()["items"]]


async def test_repeated_request_has_one_effect_and_the_same_response(ada):
    headers = keyed()

    first = await ada.post("/v1/accounts", BODY, headers=headers)
    again = await ada.post("/v1/accounts", BODY, headers=headers)

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again.headers["location"] == first.headers["location"]
    assert (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"]) == (
        None,
        "true",
    )
    assert (await accounts_of(ada)).count("Once") == 1


async def test_32_parallel_posts_with_one_key_have_one_effect_and_equal_bodies(ada, place, client_of):
    headers = {**ada.headers, **keyed()}
    async with build(place) as another:
        clients = [ada.client, client_of(another)]
        answers = await asyncio.gather(
            *(clients[number % 2].post("/v1/accounts", json=BODY, headers=headers) for number in range(32))
        )

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert (await accounts_of(ada)).count("Once") == 1


async def test_repeated_key_creation_returns_one_key_and_stores_no_plain_text(ada, owner):
    headers = keyed()
    body = {"name": "k", "scopes": ["credits:read"]}

    first = await ada.post("/v1/api-keys", body, headers=headers)
    again = await ada.post("/v1/api-keys", body, headers=headers)

    assert again.content == first.content
    kept = await owner.fetchval(
        "select string_agg(encode(response, 'escape'), '') || string_agg(encode(id, 'escape'), '')"
        " from traffic.idempotency_keys"
    )
    assert first.json()["key"][9:30] not in kept
    assert headers["Idempotency-Key"] not in kept


async def test_other_body_path_or_account_with_the_same_key_is_rejected(ada):
    headers = keyed()
    second = (await ada.post("/v1/accounts", BODY, headers=headers)).json()["id"]

    for answer in (
        await ada.post("/v1/accounts", {"name": "Twice"}, headers=headers),
        await ada.post("/v1/business-profiles", BODY, headers={**headers, "Oslira-Account": ada.account_id}),
        await ada.choosing(second).post("/v1/accounts", BODY, headers=headers),
        await ada.post("/v1/accounts?x=1", BODY, headers=headers),
    ):
        assert_problem(answer, 422, "idempotency_key_reused")
    assert "Twice" not in await accounts_of(ada)


async def test_two_principals_can_use_the_same_key(ada, stranger):
    headers = keyed()

    answers = [await person.post("/v1/accounts", BODY, headers=headers) for person in (ada, stranger)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json()["id"] != answers[1].json()["id"]


@pytest.mark.parametrize("key", ["short", "x" * 15, "x" * 256, "blank in the middle!", "\x7f" * 20, "ü" * 20])
async def test_malformed_idempotency_key_is_rejected(ada, key):
    answer = await ada.post("/v1/accounts", BODY, headers={"Idempotency-Key": key.encode("latin-1")})

    assert_problem(answer, 422, "idempotency_key_invalid")


@pytest.mark.parametrize("key", ["x" * 16, "x" * 255, "!~" * 20])
async def test_idempotency_key_of_16_to_255_characters_is_accepted(ada, key):
    assert (await ada.post("/v1/accounts", BODY, headers=keyed(key))).status_code == 201


async def test_error_response_is_replayed(ada):
    headers = keyed()

    first = await ada.post("/v1/accounts", {"name": ""}, headers=headers)
    again = await ada.post("/v1/accounts", {"name": ""}, headers=headers)

    assert first.status_code == 400
    assert again.content == first.content


async def key_row(owner, person, key):
    key_id = hashlib.sha256(f"user:{person.user_id}".encode() + b"\0" + key.encode()).digest()
    return await owner.fetchrow("select * from traffic.idempotency_keys where id = $1", key_id)


async def test_concurrent_request_with_the_same_key_gets_409(ada, owner, monkeypatch):
    monkeypatch.setattr(idempotency, "WAIT_S_MAX", 0.1)
    headers = keyed()
    transaction = owner.transaction()
    await transaction.start()
    # The user's lock, which account creation needs.
    await owner.execute(
        "select pg_advisory_xact_lock(hashtextextended('accounts of ' || $1::uuid, 0))", ada.user_id
    )
    first = asyncio.create_task(ada.post("/v1/accounts", BODY, headers=headers))
    await until(lambda: key_row(owner, ada, headers["Idempotency-Key"]))

    second = await ada.post("/v1/accounts", BODY, headers=headers)
    other = await ada.post("/v1/accounts", {"name": "Other"}, headers=headers)
    await transaction.rollback()

    assert_problem(second, 409, "idempotency_key_in_flight")
    assert second.headers["retry-after"] == "1"
    assert_problem(other, 422, "idempotency_key_reused")
    assert (await first).status_code == 201
    assert (await ada.post("/v1/accounts", BODY, headers=headers)).content == (await first).content


async def test_retry_continues_an_attempt_that_crashed_after_its_effect(ada, owner):
    headers = keyed()
    first = await ada.post("/v1/accounts", BODY, headers=headers)
    # The state after a process crashed between the effect and the response, half a minute ago.
    await owner.execute(
        "update traffic.idempotency_keys set response = null, locked_until = now() where effect_id = $1",
        uuid.UUID(first.json()["id"]),
    )

    again = await ada.post("/v1/accounts", BODY, headers=headers)

    assert again.json() == first.json()
    assert "idempotency-replayed" not in again.headers
    assert (await accounts_of(ada)).count("Once") == 1


async def test_retry_after_a_crashed_key_creation_returns_one_working_key(ada, owner, client):
    headers, body = keyed(), {"name": "k", "scopes": ["credits:read"]}
    lost = (await ada.post("/v1/api-keys", body, headers=headers)).json()
    await owner.execute(
        "update traffic.idempotency_keys set response = null, locked_until = now() where effect_id = $1",
        uuid.UUID(lost["id"]),
    )

    found = (await ada.post("/v1/api-keys", body, headers=headers)).json()

    assert found["id"] == lost["id"]
    assert len((await ada.get("/v1/api-keys")).json()["items"]) == 1
    working = [
        (await client.get("/v1/me", headers={"Authorization": f"Bearer {key['key']}"})).status_code
        for key in (found, lost)
    ]
    assert working == [200, 401]


async def test_crashed_attempt_blocks_its_key_for_less_than_a_minute():
    assert idempotency.WORK_S_MAX < idempotency.LOCK_S < 60


@pytest.mark.parametrize(
    ("error", "code"),
    [(Exception("broken"), "internal_error"), (type("Down", (Unavailable,), {"code": "down"})(), "down")],
)
async def test_server_error_is_not_stored(ada, application, monkeypatch, error, code):
    headers = keyed()

    async def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(type(application.dependencies["accounts"]), "create", fail)
        failed = await ada.post("/v1/accounts", BODY, headers=headers)
    again = await ada.post("/v1/accounts", BODY, headers=headers)

    assert failed.json()["code"] == code
    assert again.status_code == 201


async def test_key_can_be_reused_after_a_day(ada, owner):
    headers = keyed()
    first = await ada.post("/v1/accounts", BODY, headers=headers)
    await owner.execute(
        "update traffic.idempotency_keys set created_at = now() - interval '25 hours',"
        " locked_until = now() - interval '25 hours' where effect_id = $1",
        uuid.UUID(first.json()["id"]),
    )

    other = await ada.post("/v1/accounts", {"name": "Tomorrow"}, headers=headers)

    assert other.status_code == 201
    assert other.json()["id"] != first.json()["id"]


async def test_handler_that_exceeds_its_lock_is_stopped(ada, application, monkeypatch):
    monkeypatch.setattr(idempotency, "WORK_S_MAX", 0.05)
    headers = keyed()

    async def dawdle(*_, **__):
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(type(application.dependencies["accounts"]), "create", dawdle)
        stopped = await ada.post("/v1/accounts", BODY, headers=headers)
    monkeypatch.undo()

    assert_problem(stopped, 503, "request_took_too_long")
    assert (await ada.post("/v1/accounts", BODY, headers=headers)).status_code == 201


async def test_only_posts_are_stored(ada, owner):
    headers = keyed()

    await ada.patch(f"/v1/accounts/{ada.account_id}", {"name": "Renamed"}, headers=headers)
    await ada.get("/v1/me", headers=headers)

    assert await key_row(owner, ada, headers["Idempotency-Key"]) is None
