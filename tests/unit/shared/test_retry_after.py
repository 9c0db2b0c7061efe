from datetime import timedelta
from email.utils import format_datetime

import pytest

from shared.retry import RETRY_AFTER_MAX_S, retry_after_s
from tests.support import NOON

UNREADABLE = [
    *("", "-5", "-1", "inf", "nan", "1e3", "²", "tomorrow", "Thu, 99 Foo 2026 99:99:99 GMT"),
    "Thu, 01 Jan 99999 12:00:00 GMT",
    "Thu, 01 Jan 2026 12:00:00 +99999999999999999",
    "Thu, 01 Jan 2026 99999999999999999999:00:00 GMT",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("3", 3.0), (" 2.5 ", 2.5), ("0", 0.0), ("9" * 400, RETRY_AFTER_MAX_S), (None, None)),
        (format_datetime(NOON + timedelta(seconds=90), usegmt=True), 90.0),
        ("Thu, 01 Jan 2026 12:01:30 -0000", 90.0),
        (format_datetime(NOON - timedelta(days=1), usegmt=True), 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", RETRY_AFTER_MAX_S),
        ("Fri, 31 Dec 9999 23:59:59 -2359", RETRY_AFTER_MAX_S),
        *((text, None) for text in UNREADABLE),
    ],
)
def test_header_is_read_as_seconds_within_a_day_or_ignored(text, expected):
    assert retry_after_s(text, now=NOON) == expected
