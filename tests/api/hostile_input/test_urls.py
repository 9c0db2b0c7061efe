"""Invalid paths, queries and methods: every operation rejects them with a problem, never a 5xx."""

import json
import re
import uuid

import pytest

from shared.pagination import CURSOR_PATTERN, POSITION_PATTERN
from tests.api.hostile_input.bodies import JSON, example_of
from tests.support.problems import assert_problem

SPELLINGS = {
    "integer": [
        "",
        "1_0",
        "+1",
        "1.0",
        "1e2",
        " 1",
        "1 ",
        "\uff11",
        "01",
        "nan",
        "true",
        "0x1",
        str(2**70),
        "-1",
    ],
    "boolean": ["", "yes", "1", "0", "on", "TRUE", "True", "null", " true"],
    "date-time": ["", "null", "now", "1", "2026-01-01", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "nan"],
    "uuid": ["", "null", "1", "00000000000000000000000000000000", "{00000000-0000-0000-0000-000000000000}"],
    "enum": ["", "null", "GRANT", "grant,hold", "grant ", "0"],
    "maxLength": ["", "\0", "a\0b", "x" * 1_000],  # any text up to a length
    "pattern": ["", "null", "x", "p1", "cDE", "70" + "31" * 19, "7031\n", "7031 ", "0" * 10_000],
}
IDS = [
    "{hex}",
    "{{{id}}}",
    "urn:uuid:{id}",
    "{id}%00",
    "%20{id}",
    "{id}%0A",
    "1_0",
    "%00",
    "..%2f",
    "{misplaced}",
]


def kind_of(schema):
    return next(
        (word for word in ("enum", "maxLength", "pattern") if word in schema),
        schema.get("format", schema["type"]),
    )


async def test_misspelled_query_values_are_rejected(operations, send, assert_refused):
    tried = 0
    for method, path, operation in operations:
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query":
                for text in SPELLINGS[kind_of(parameter["schema"])]:
                    tried += 1
                    query = f"?{parameter['name']}={''.join(f'%{byte:02x}' for byte in text.encode())}"
                    assert_refused(await send(method, path, query=query), (method, path, query))

    assert tried > 100


async def test_largest_allowed_cursors_are_accepted(operations, send):
    tried = 0
    for method, path, operation in operations:
        for parameter in operation.get("parameters", ()):
            if parameter["name"] == "cursor":
                for query in farthest(parameter["schema"]["pattern"]):
                    tried += 1
                    answer = await send(method, path, query=query)
                    assert answer.status_code in (200, 404), (path, query, answer.text)

    assert tried > 10


def farthest(pattern):
    """Returns queries with the largest cursors that a list's pattern allows."""
    name = "2e" + "66" * 32
    if pattern == POSITION_PATTERN:
        return ["?cursor=70" + "39" * 18]
    if pattern == CURSOR_PATTERN:
        return ["?cursor=74" + "39" * 17 + name]
    number, time, text = "39" * 18, "39" * 17, "7a" * 30
    values = {"followers": number, "score": number, "username": text, "last_analysed_at": time}
    queries = [
        f"?sort={sort}{field}&cursor=73{(sort + field).encode().hex()}3a{value}{name}"
        for field, value in values.items()
        for sort in ("", "-")
        if re.search(rf"[(|]{(sort + field).encode().hex()}3a", pattern)
    ]
    assert queries, pattern
    return queries


async def test_unknown_and_repeated_query_parameters_are_rejected(operations, send, assert_refused):
    for method, path, operation in operations:
        names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        answer = await send(method, path, query="?surprise=1")
        assert_refused(answer, (method, path))
        assert answer.json()["errors"] == [{"field": "surprise", "message": "Unknown parameter"}]
        if "limit" in names:
            answer = await send(method, path, query="?limit=1&limit=1")
            assert_problem(answer, 400, "invalid_request")
            assert answer.json()["errors"] == [{"field": "limit", "message": "Sent more than once"}]


@pytest.mark.parametrize("spelling", IDS)
async def test_noncanonical_ids_in_paths_are_not_found(operations, send, account_id_of_operator, spelling):
    own = uuid.UUID(account_id_of_operator)
    text = spelling.format(id=own, hex=own.hex, misplaced="----" + own.hex)
    for method, path, operation in operations:
        if "{" in path:
            example = example_of(operation)
            content = json.dumps(example) if example else None
            answer = await send(method, path, id_text=text, headers=JSON, content=content)
            assert_problem(answer, 404, answer.json()["code"])
            known = ("route_not_found", "account_not_found")
            if path.endswith("/{token}"):  # any text can be a token
                known += ("anonymous_analysis_not_found",)
            if "/{event_id}" in path:  # Stripe's id, which can be any text
                known += ("webhook_event_not_found",)
            if "/{job}" in path:  # a name, not an id
                known += ("job_unknown",)
            assert answer.json()["code"] in known, (method, path)


async def test_uppercase_ids_are_accepted(send, account_id_of_operator):
    answer = await send("GET", "/v1/accounts/{account_id}", id_text=account_id_of_operator.upper())

    assert answer.json()["id"] == account_id_of_operator


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PUT", "CONNECT", "BREW"])
async def test_allow_header_lists_the_methods_of_every_path(document, send, method):
    for path, methods in document["paths"].items():
        answer = await send(method, path)
        known = {name.upper() for name in methods} | {"OPTIONS"}
        assert set(answer.headers["allow"].split(", ")) == known | ({"HEAD"} if "GET" in known else set())
        assert answer.status_code == (204 if method == "OPTIONS" else 405)


async def test_unknown_schema_paths_return_a_problem(client):
    for path in ("/schema/nothing", "/schema/nothing.json", "/schema/nothing/at/all", "/schema/swagger"):
        assert_problem(await client.get(path), 404, "route_not_found")
