"""The Retry-After header of a response (RFC 9110, section 10.2.3)."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

RETRY_AFTER_MAX_S = 86_400.0

_NUMBER = re.compile(r"\d+(?:\.\d*)?", re.ASCII)


def retry_after_s(text: str | None, *, now: datetime | None = None) -> float | None:
    """Seconds to wait, at most a day; None when the header is missing or unreadable. Never raises."""
    text = (text or "").strip()
    if _NUMBER.fullmatch(text):
        return min(float(text), RETRY_AFTER_MAX_S)
    try:
        until = parsedate_to_datetime(text)
        wait_s = (until.replace(tzinfo=until.tzinfo or UTC) - (now or datetime.now(UTC))).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(wait_s, 0.0), RETRY_AFTER_MAX_S)
