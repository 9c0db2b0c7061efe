"""Retry policy, backoff and the Retry-After header."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import msgspec

from shared.errors import Unavailable

T = TypeVar("T")
# Codes of failures of our own database and slots: a step is retried until they pass.
OWN_FAILURES = frozenset({"database_unavailable", "slot_lost", "slots_busy"})
WAIT_S_FIRST = 0.1
WAIT_S_MAX = 2.0
RETRY_AFTER_MAX_S = 86_400.0
_SECONDS = re.compile(r"\d+(?:\.\d*)?", re.ASCII)


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Number of attempts after ``Unavailable``, and the delay between them. Other errors are never retried.
    ``OWN_FAILURES`` do not count as attempts.
    """

    attempts_max: int = 4
    wait_s_first: float = 0.5
    wait_s_max: float = 30.0

    def wait_s(self, attempt: int, asked_s: int | None) -> float:
        """Return the delay after ``attempt``: exponential, at least ``asked_s`` (Retry-After), and capped."""
        return min(max(self.wait_s_first * 2.0**attempt, asked_s or 0), self.wait_s_max)


DEFAULT_RETRY = RetryPolicy()


async def until_database_answers(call: Callable[[], Awaitable[T]]) -> T:
    """Retry ``call`` without limit on ``Unavailable``: without its database the process cannot work."""
    wait_s = WAIT_S_FIRST
    while True:
        try:
            return await call()
        except Unavailable:
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, WAIT_S_MAX)


def retry_after_s(text: str | None, *, now: datetime | None = None) -> float | None:
    """Return the seconds of a Retry-After header (RFC 9110, section 10.2.3), at most a day.

    Returns None when the header is missing or unreadable. Never raises.
    """
    text = (text or "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), RETRY_AFTER_MAX_S)
    try:
        until = parsedate_to_datetime(text)
        wait_s = (until.replace(tzinfo=until.tzinfo or UTC) - (now or datetime.now(UTC))).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(wait_s, 0.0), RETRY_AFTER_MAX_S)
