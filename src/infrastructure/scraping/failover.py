"""A second source for when the first fails."""

import math
import time
from collections.abc import Callable

import structlog

from features.analysis.application.ports import ProfileSource
from features.analysis.domain.errors import ProfilesUnavailable
from features.analysis.domain.profile import Scrape
from shared.questions import Spender

FAILURES_MAX = 5
REST_S = 60.0

log: structlog.stdlib.BoundLogger = structlog.get_logger("scraping")


class _Breaker:
    """After so many failures in a row nobody passes for a minute; then one does, to see."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._failures = 0
        self._opens_at_s = 0.0
        self._is_probing = False

    @property
    def rest_s(self) -> float:
        return max(self._opens_at_s - self._now_s(), 0.0)

    def lets_pass(self) -> bool:
        if self._failures < FAILURES_MAX:
            return True
        if self.rest_s > 0 or self._is_probing:
            return False
        self._is_probing = True
        return True

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self) -> None:
        self._failures += 1
        if self._failures >= FAILURES_MAX:
            self._opens_at_s = self._now_s() + REST_S

    def left(self) -> None:
        """Whoever passed, however it went: also cancelled, which says nothing."""
        self._is_probing = False


class FailoverProfiles(ProfileSource):
    """``second_posts_max``: who needs more posts than the second can show is told of the first's failure."""

    def __init__(
        self,
        first: ProfileSource,
        second: ProfileSource,
        *,
        second_posts_max: int = 12,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first = first
        self._second = second
        self._second_posts_max = second_posts_max
        self._breaker = _Breaker(now_s)

    async def look(self, username: str, *, posts_max: int, spender: Spender) -> Scrape:
        try:
            return await self._look_first(username, posts_max, spender)
        except ProfilesUnavailable as refusal:
            if posts_max > self._second_posts_max:
                raise
            log.warning("second_source_asked", retry_after_s=refusal.retry_after_s)
        return await self._second.look(username, posts_max=posts_max, spender=spender)

    async def _look_first(self, username: str, posts_max: int, spender: Spender) -> Scrape:
        breaker = self._breaker
        if not breaker.lets_pass():
            raise ProfilesUnavailable(username, max(math.ceil(breaker.rest_s), 1))
        try:
            scrape = await self._first.look(username, posts_max=posts_max, spender=spender)
        except ProfilesUnavailable:
            breaker.failed()
            raise
        else:
            breaker.succeeded()
            return scrape
        finally:
            breaker.left()
