import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.ai.providers.errors import code_of, requested_wait_s
from shared.retry import RETRY_AFTER_MAX_S


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after-ms": "9" * 400}, RETRY_AFTER_MAX_S),
    ],
    ids=str,
)
def test_retry_after_is_parsed_or_ignored(headers, expected):
    assert requested_wait_s(headers) == expected


@given(st.text(), st.text())
def test_any_retry_after_is_bounded_or_none(seconds, milliseconds):
    wait_s = requested_wait_s({"retry-after": seconds, "retry-after-ms": milliseconds})

    assert wait_s is None or 0 <= wait_s <= RETRY_AFTER_MAX_S


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"error": {"code": "a_code", "type": "a_type"}}', "a_code"),
        (b'{"error": {"code": null, "type": "a_type"}}', "a_type"),
        (b'{"error": {"type": "a_type", "details": {"error_code": "a_cause"}}}', "a_cause"),
        (b'{"error": {"code": "Your prompt was: hello"}}', ""),
        (b'{"error": {"code": 2009}}', ""),
        (b'{"error": [{"code": 2009, "message": "Unauthorized"}]}', ""),
        (b'{"error": "text"}', ""),
        (b'{"detail": "x"}', ""),
        (b"[]", ""),
        (b"<html>", ""),
        (b"", ""),
        (b'"\xff"', ""),
    ],
)
def test_only_valid_error_codes_are_returned(body, code):
    assert code_of(body) == code


@given(st.binary())
def test_error_code_of_any_body_is_short(body):
    assert len(code_of(body)) <= 60
