"""How long others are waited for."""

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
    """How often a step is tried when others fail (``Unavailable``), and how long is waited in between.
    A refusal, or a mistake of ours, is never tried again. ``OWN_FAILURES`` do not count as attempts.
    """

    attempts_max: int = 4
    wait_s_first: float = 0.5
    wait_s_max: float = 30.0

    def wait_s(self, attempt: int, asked_s: int | None) -> float:
        """After so many attempts; whoever failed may have asked for a certain time."""
        return min(max(self.wait_s_first * 2.0**attempt, asked_s or 0), self.wait_s_max)


DEFAULT_RETRY = RetryPolicy()


async def until_database_answers(call: Callable[[], Awaitable[T]]) -> T:
    """Ask our own database until it answers: without it there is nothing else to do."""
    wait_s = WAIT_S_FIRST
    while True:
        try:
            return await call()
        except Unavailable:
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, WAIT_S_MAX)
