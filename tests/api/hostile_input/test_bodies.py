"""Invalid bodies: every operation rejects them with a problem, never a 5xx."""

import json
from contextlib import suppress

import pytest

from tests.api.hostile_input.bodies import JSON, body_of, example_of
from tests.support.problems import assert_problem

VALUES = {
    "NaN": "NaN",
    "Infinity": "Infinity",
    "-Infinity": "-Infinity",
    "1e999": "1e999",
    "2^70": str(2**70),
    "-2^70": str(-(2**70)),
    "5,000 digits": "9" * 5_000,
    "NUL": '"a\\u0000"',
    "a lone surrogate": '"\\ud800"',
    "a huge string": '"' + "x" * 100_000 + '"',
    "a number as text": '"1"',
    "a boolean": "true",
    "a fraction": "1.5",
    "an empty text": '""',
    "a list of lists": "[[]]",
    "an object": '{"a": 1}',
}
BODIES = {
    "nothing": b"",
    "no value": b"null",
    "a list": b"[]",
    "a text": b'"text"',
    "a number": b"1",
    "truncated": b'{"name": "a',
    "two values": b"{}{}",
    "a comment": b"{} // and more",
    "a trailing comma": b'{"name": "a",}',
    "single quotes": b"{'name': 'a'}",
    "no UTF-8": b'{"name": "\xff"}',
    "UTF-16": '{"name": "a"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"name": "a"}',
    "990 deep": b'{"name": ' + b"[" * 990 + b"]" * 990 + b"}",
    "990 objects deep": b'{"name": ' * 990 + b"1" + b"}" * 990,
    "an unknown field": b'{"surprise": 1}',
}
CONTENT_TYPES = [
    "",
    "text/plain",
    "text/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/msgpack",
    "application/json; charset=utf-16",
    "application/json; charset=latin-1",
    "application/json, text/plain",
]


def loads(text):
    """Returns None if the text is not JSON."""
    with suppress(ValueError):
        return json.loads(text, parse_constant=int)  # int("NaN") raises ValueError too


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_values_that_violate_the_schema_are_rejected(
    operations, send, is_allowed, assert_refused, value
):
    tried = 0
    for method, path, operation in operations:
        schema = body_of(operation)
        for field in example_of(operation) or ():
            text = json.dumps({**example_of(operation), field: "@@"}).replace('"@@"', value)
            body = loads(text)
            if body is None or "\\ud800" in text or not is_allowed(schema, body):
                tried += 1
                answer = await send(method, path, headers=JSON, content=text)
                assert_refused(answer, (method, path, field))

    assert tried > 5


@pytest.mark.parametrize("content", BODIES.values(), ids=BODIES)
async def test_malformed_bodies_are_rejected(operations, send, assert_refused, content):
    for method, path, operation in operations:
        if body_of(operation):
            answer = await send(method, path, headers=JSON, content=content)
            assert_refused(answer, (method, path))


@pytest.mark.parametrize("content_type", CONTENT_TYPES)
async def test_other_content_types_are_rejected(operations, send, content_type):
    for method, path, operation in operations:
        if example := example_of(operation):
            content = json.dumps(example)
            answer = await send(method, path, headers=[("Content-Type", content_type)], content=content)
            assert_problem(answer, 415, "unsupported_media_type")
