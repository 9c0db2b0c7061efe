from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.ai.troubles import RETRY_AFTER_MAX_S, code_of, retry_after_s
from tests.support import NOON


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": format_datetime(NOON + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:01:30 -0000"}, 90.0),
        ({"retry-after": format_datetime(NOON - timedelta(days=1), usegmt=True)}, 0.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, RETRY_AFTER_MAX_S),
        ({"retry-after": "9" * 400}, RETRY_AFTER_MAX_S),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Thu, 99 Foo 2026 99:99:99 GMT"}, None),
    ],
    ids=str,
)
def test_when_to_come_again_is_understood_or_left_alone(headers, expected):
    assert retry_after_s(headers, now=NOON) == expected


@given(st.text(), st.text())
def test_whatever_a_server_says_it_is_a_time_within_a_day_or_none(seconds, milliseconds):
    wait_s = retry_after_s({"retry-after": seconds, "retry-after-ms": milliseconds}, now=datetime.now(UTC))

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
def test_only_what_looks_like_a_code_is_one(body, code):
    assert code_of(body) == code


@given(st.binary())
def test_no_body_breaks_the_search_for_a_code(body):
    assert len(code_of(body)) <= 60
