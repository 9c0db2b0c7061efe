"""Retry policy and backoff."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from shared.errors import Unavailable

T = TypeVar("T")
# Codes of failures of our own database and slots: a step is retried until they pass.
OWN_FAILURES = frozenset({"database_unavailable", "slot_lost", "slots_busy"})
WAIT_S_FIRST = 0.1
WAIT_S_MAX = 2.0


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
