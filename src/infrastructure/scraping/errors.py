"""Classified scraping errors and their retries."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Literal

import structlog

ErrorKind = Literal[
    "timeout",  # no response in time
    "connection",  # refused, reset, or closed during the response
    "limited",  # too many concurrent requests; temporary
    "unavailable",  # server error or failed run
    "malformed_response",  # unexpected content, e.g. HTML, a truncated document, or another profile
    "rejected",  # our key, plan or request is rejected; an operator must act
]

RETRIES_MAX = 3
FIRST_DELAY_S = 5.0
LIMITED_RETRIES_MAX = 20
LIMITED_DELAY_S = 5.0
RETRY_AFTER_MAX_S = 60.0
CALLER_RETRY_AFTER_S = 60
CALLER_RETRY_AFTER_MAX_S = 900

Sleep = Callable[[float], Awaitable[None]]

log: structlog.stdlib.BoundLogger = structlog.get_logger("scraping")


class ScrapeError(Exception):
    """``detail``: status and code, never the provider's text. ``was_sent``: the provider may have processed
    the request.
    """

    def __init__(
        self,
        kind: ErrorKind,
        *,
        detail: str = "",
        retry_after_s: float | None = None,
        was_sent: bool = True,
    ) -> None:
        super().__init__(kind, detail)
        self.kind: ErrorKind = kind
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.was_sent = was_sent


class ScrapeRetries:
    """Retries of one scrape: three, with delays that start at five seconds and double. "limited" errors are
    retried separately.
    """

    def __init__(self, sleep: Sleep = asyncio.sleep, jitter: Callable[[], float] = random.random) -> None:
        self._sleep = sleep
        self._jitter = jitter
        self._failures = 0
        self._limited = 0

    async def wait_after(self, error: ScrapeError) -> None:
        """Waits before the next attempt. Raises ``error`` when no attempt is left."""
        delay_s = self._delay_s(error)
        if delay_s is None:
            raise error
        log.info("scrape_retried", error=error.kind, detail=error.detail, delay_s=round(delay_s, 1))
        await self._sleep(delay_s)

    def _delay_s(self, error: ScrapeError) -> float | None:
        if error.kind == "rejected":
            return None
        requested_s = min(error.retry_after_s or 0.0, RETRY_AFTER_MAX_S)
        spread = 1 + self._jitter() / 4
        if error.kind == "limited":
            self._limited += 1
            return None if self._limited > LIMITED_RETRIES_MAX else max(requested_s, LIMITED_DELAY_S * spread)
        self._failures += 1
        if self._failures > RETRIES_MAX:
            return None
        return max(requested_s, FIRST_DELAY_S * 2 ** (self._failures - 1) * spread)


def caller_retry_after_s(error: Exception) -> int:
    """Retry-After for the caller of a failed scrape."""
    requested_s = error.retry_after_s if isinstance(error, ScrapeError) else None
    return round(min(max(requested_s or 0.0, CALLER_RETRY_AFTER_S), CALLER_RETRY_AFTER_MAX_S))
