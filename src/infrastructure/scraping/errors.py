"""Classified scraping errors and their retries."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Literal

import structlog

Trouble = Literal[
    "timeout",  # no response in time
    "connection",  # refused, reset, or closed during the response
    "not_now",  # too many concurrent requests; temporary
    "unavailable",  # server error or failed run
    "garbled",  # unexpected content, e.g. HTML, a truncated document, or another profile
    "refused",  # our key, plan or request is rejected; an operator must act
]

RETRIES_MAX = 3
FIRST_DELAY_S = 5.0
NOT_NOW_MAX = 20
NOT_NOW_DELAY_S = 5.0
RETRY_AFTER_MAX_S = 60.0
TOLD_RETRY_AFTER_S = 60
TOLD_RETRY_AFTER_MAX_S = 900

Sleep = Callable[[float], Awaitable[None]]

log: structlog.stdlib.BoundLogger = structlog.get_logger("scraping")


class ScrapeError(Exception):
    """``detail``: status and code, never the provider's text. ``was_sent``: the provider may have processed
    the request.
    """

    def __init__(
        self,
        trouble: Trouble,
        *,
        detail: str = "",
        retry_after_s: float | None = None,
        was_sent: bool = True,
    ) -> None:
        super().__init__(trouble, detail)
        self.trouble: Trouble = trouble
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.was_sent = was_sent


class ScrapeRetryLimits:
    """Retries of one scrape: three, with delays that start at five seconds and double. "not_now" errors are
    retried separately.
    """

    def __init__(self, sleep: Sleep = asyncio.sleep, jitter: Callable[[], float] = random.random) -> None:
        self._sleep = sleep
        self._jitter = jitter
        self._failures = 0
        self._refusals = 0

    async def after(self, trouble: ScrapeError) -> None:
        """Waits before the next attempt. Raises ``trouble`` when no attempt is left."""
        delay_s = self._delay_s(trouble)
        if delay_s is None:
            raise trouble
        log.info("looking_again", trouble=trouble.trouble, detail=trouble.detail, delay_s=round(delay_s, 1))
        await self._sleep(delay_s)

    def _delay_s(self, trouble: ScrapeError) -> float | None:
        if trouble.trouble == "refused":
            return None
        asked_for_s = min(trouble.retry_after_s or 0.0, RETRY_AFTER_MAX_S)
        spread = 1 + self._jitter() / 4
        if trouble.trouble == "not_now":
            self._refusals += 1
            return None if self._refusals > NOT_NOW_MAX else max(asked_for_s, NOT_NOW_DELAY_S * spread)
        self._failures += 1
        if self._failures > RETRIES_MAX:
            return None
        return max(asked_for_s, FIRST_DELAY_S * 2 ** (self._failures - 1) * spread)


def told_retry_after_s(error: Exception) -> int:
    """Retry-After for the caller of a failed scrape."""
    asked_for_s = error.retry_after_s if isinstance(error, ScrapeError) else None
    return round(min(max(asked_for_s or 0.0, TOLD_RETRY_AFTER_S), TOLD_RETRY_AFTER_MAX_S))
