"""Invalid headers: every operation rejects them with a problem, never a 5xx."""

import json
import uuid

import pytest

from tests.api.hostile_input.bodies import JSON, example_of
from tests.support.problems import assert_problem


@pytest.mark.parametrize(
    "text", ["", "x", "{id}x", "{{{id}}}", "urn:uuid:{id}", "{hex}", "{id}, {id}", "*", "\xff"]
)
async def test_invalid_account_header_is_rejected(operations, send, account_id_of_operator, text):
    own = uuid.UUID(account_id_of_operator)
    value = text.format(id=own, hex=own.hex).encode("latin-1")
    for method, path, operation in operations:
        if any(one["name"] == "Oslira-Account" for one in operation.get("parameters", ())):
            answer = await send(method, path, headers=[("Oslira-Account", value)])
            assert_problem(answer, 422, "account_header_invalid")


@pytest.mark.parametrize("value", [b"", b"short", b"x" * 256, b"a key with blanks", b"\xff" * 16, b"*"])
async def test_invalid_idempotency_key_is_rejected(operations, send, value):
    posts = [
        (path, operation)
        for method, path, operation in operations
        if method == "POST" and operation.get("security") != [{}]  # keys of anonymous callers are ignored
    ]

    assert len(posts) > 10
    for path, operation in posts:
        content = json.dumps(example_of(operation)) if example_of(operation) else None
        headers = [*JSON, ("Idempotency-Key", value)]
        assert_problem(
            await send("POST", path, headers=headers, content=content), 422, "idempotency_key_invalid"
        )


async def test_two_tokens_are_rejected(operations, send, operator):
    for method, path, operation in operations:
        if operation.get("security") != [{}]:
            answer = await send(method, path, headers=[*operator.items()])
            assert_problem(answer, 401, "token_invalid")


@pytest.mark.parametrize("value", [b"", b"x", b'"', b'W/"1"', b'"1", x', b"\xff", b'"' + b"9" * 5_000 + b'"'])
async def test_invalid_entity_tag_matches_nothing(send, client, operator, value):
    headers = {**operator, "Content-Type": "application/json"}
    created = await client.post("/v1/business-profiles", headers=headers, json={"name": "Alpine Coffee"})
    address = created.headers["location"]

    changed = await send("PATCH", address, headers=[*JSON, ("If-Match", value)], content='{"name": "Other"}')
    deleted = await send("DELETE", address, headers=[("If-Match", value)])
    read = await send("GET", address, headers=[("If-None-Match", value)])

    assert_problem(changed, 412, "profile_changed")
    assert_problem(deleted, 412, "profile_changed")
    assert read.status_code == (304 if value == b'W/"1"' else 200)
    assert (await client.delete(address, headers=operator)).status_code == 204
