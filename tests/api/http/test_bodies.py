"""Invalid request bodies and queries: rejected with the name of the field, never with a 500."""

import json

import pytest

from tests.support.problems import assert_problem


async def test_an_unknown_field_is_refused_by_name(post):
    answer = await post("grants", json.dumps({"reference": "r", "credits": 1, "surprise": 1}))

    assert_problem(answer, 400, "invalid_request")
    assert "unknown field" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"reference": "r", "credits": 1.5}, "credits"),
        ({"reference": "r", "credits": []}, "credits"),
        ({"reference": "r", "credits": None}, "credits"),
        ({"reference": "r", "credits": 0}, "credits"),
        ({"reference": "r", "credits": 2**70}, "credits"),
        ({"reference": "r", "credits": -(2**70)}, "credits"),
        ({"reference": 1, "credits": 1}, "reference"),
        ({"reference": "", "credits": 1}, "reference"),
        ({"reference": "r" * 201, "credits": 1}, "reference"),
        ({"reference": "r", "credits": 1, "description": "d" * 501}, "description"),
        ({"reference": "r", "credits": 1, "transaction_type": "DROP TABLE"}, "transaction_type"),
        ({"reference": "r", "credits": 1, "expires_at": "tomorrow"}, "expires_at"),
        ({"reference": "r", "credits": 1, "expires_at": "2030-01-01T00:00:00"}, "expires_at"),
    ],
    ids=lambda value: ascii(value)[:60],
)
async def test_a_wrong_value_is_refused_with_its_fields_name(post, body, field):
    answer = await post("grants", json.dumps(body))

    assert_problem(answer, 400, "invalid_request")
    assert [error["field"] for error in answer.json()["errors"]] == [field]


@pytest.mark.parametrize(
    ("field", "is_quoted"),
    [
        ("surprise", True),
        ("creditsSpent", True),
        ("osl_live_2tYJ5ZQv", False),
        ("x" * 41, False),
        ("`", False),
    ],
)
async def test_unknown_field_is_quoted_only_if_it_looks_like_a_field_name(post, field, is_quoted):
    answer = await post("grants", json.dumps({"reference": "r", "credits": 1, field: 1}))

    assert "unknown field" in answer.json()["detail"]
    assert (f"`{field}`" in answer.text) is is_quoted


async def test_a_value_that_is_none_of_the_choices_is_not_quoted(client, bearer):
    headers = bearer()
    queried = await client.get("/v1/credits/transactions", headers=headers, params={"kind": "canary"})
    body = {"name": "k", "scopes": ["account:read"], "mode": "canary"}
    sent = await client.post("/v1/api-keys", headers=headers, json=body)

    for answer, field in ((queried, "kind"), (sent, "mode")):
        assert_problem(answer, 400, "invalid_request")
        assert [error["field"] for error in answer.json()["errors"]] == [field]
        assert "canary" not in answer.text


@pytest.mark.parametrize("missing", ["reference", "credits"])
async def test_a_missing_field_is_named(post, missing):
    body = {"reference": "r", "credits": 1}
    del body[missing]

    answer = await post("grants", json.dumps(body))

    assert_problem(answer, 400, "invalid_request")
    assert missing in answer.json()["detail"]


async def test_a_missing_body_is_explained(post):
    answer = await post("grants", b"")

    assert_problem(answer, 400, "invalid_request")
    assert "body" in answer.json()["detail"]


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"}",
        b"{}}",
        b"null",
        b"[]",
        b'"text"',
        b"{'reference': 'r'}",
        b'{"reference": "r", "credits": NaN}',
        b'{"reference": "r", "credits": Infinity}',
        b'{"reference": "r", "credits": 1e999}',
        b'{"reference": "r", "credits": ' + b"9" * 5_000 + b"}",
        b'{"reference": "r", "credits": 1,}',
        b'{"reference": "\\ud800", "credits": 1}',
        b'\xef\xbb\xbf{"reference": "r", "credits": 1}',
    ],
    ids=lambda content: ascii(content[:40]),
)
async def test_body_that_is_not_a_json_object_is_rejected(post, content):
    answer = await post("grants", content)

    assert_problem(answer, 400, "invalid_request")


@pytest.mark.parametrize("content", [b'{"reference": "\xff", "credits": 1}', b'{"\xc3\x28": 1}'], ids=ascii)
async def test_body_that_is_not_utf_8_is_rejected(post, content):
    answer = await post("grants", content)

    assert answer.status_code in (400, 415)
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


async def test_a_2_kilobyte_body_nested_990_deep_is_refused(post):
    answer = await post("grants", b'{"reference": ' + b"[" * 990 + b"]" * 990 + b"}")

    assert_problem(answer, 400, "json_too_deep")


async def test_duplicate_keys_count_once(post):
    answer = await post("grants", b'{"reference": "r", "credits": 1, "credits": 2}')

    assert answer.status_code == 200
    assert answer.json()["credits_moved"] == 2


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/json; charset=latin-1", "application/msgpack", ""]
)
async def test_a_body_of_another_type_is_refused(post, content_type):
    answer = await post("grants", b'{"reference": "r", "credits": 1}', content_type)

    assert_problem(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize("field", ["reference", "description"])
async def test_text_with_a_nul_is_refused(post, field):
    answer = await post("grants", json.dumps({"reference": "a", "credits": 1, field: "a\0"}))

    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("invalid_request", "ledger_change_invalid")


@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
@pytest.mark.parametrize(
    "address",
    ["balance?at={}", "transactions?since={}", "transactions?until={}", "transactions.csv?since={}"],
)
async def test_an_instant_beyond_the_calendar_is_refused(client, bearer, address, instant):
    answer = await client.get(f"/v1/credits/{address.format(instant.replace('+', '%2B'))}", headers=bearer())

    assert answer.status_code in (400, 422)
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
async def test_an_expiry_beyond_the_calendar_is_refused(post, instant):
    answer = await post("grants", json.dumps({"reference": "r", "credits": 1, "expires_at": instant}))

    assert answer.status_code in (400, 422)
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


async def test_an_instant_without_its_offset_is_refused(client, bearer):
    answer = await client.get("/v1/credits/balance?at=2026-01-01T00:00:00", headers=bearer())

    assert answer.status_code in (400, 422)
