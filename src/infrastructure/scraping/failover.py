"""Failover to a second profile source."""

import math
import time
from collections.abc import Callable

import structlog

from features.analysis.application.ports import ProfileSource
from features.analysis.domain.errors import ProfilesUnavailable
from features.analysis.domain.profile.profile import Scrape
from infrastructure.resilience.circuit_breaker import BreakerRules, CallResult, CircuitBreaker
from infrastructure.resilience.semaphore import SlotsBusy
from shared.llm import CostOwner

# Five consecutive failures open the breaker for a minute, then one call probes the source. Failures between
# successes are caused by the profiles rather than by the source, so their share does not count.
RULES = BreakerRules(failures_max=5, failed_share=math.inf, open_s=60.0, open_max_s=60.0)

log: structlog.stdlib.BoundLogger = structlog.get_logger("scraping")


class FailoverProfiles(ProfileSource):
    """``second_posts_max``: the first source's error is raised if more posts are requested than the second
    returns.
    """

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
        self._breaker = CircuitBreaker(now_s, RULES)

    async def fetch(self, username: str, *, posts_max: int, cost_owner: CostOwner) -> Scrape:
        try:
            return await self._fetch_first(username, posts_max, cost_owner)
        except (ProfilesUnavailable, SlotsBusy) as error:
            if posts_max > self._second_posts_max:
                raise
            log.warning("second_source_used", reason=error.code, retry_after_s=error.retry_after_s)
        return await self._second.fetch(username, posts_max=posts_max, cost_owner=cost_owner)

    async def _fetch_first(self, username: str, posts_max: int, cost_owner: CostOwner) -> Scrape:
        permit = self._breaker.enter()
        if permit is None:
            blocked_s = self._breaker.blocked_for_s  # infinite during another call's probe
            retry_after_s = max(math.ceil(min(blocked_s, RULES.open_s)), 1)
            raise ProfilesUnavailable(username=username, retry_after_s=retry_after_s)
        result: CallResult = "unknown"  # also after an error of our own database or semaphore
        try:
            scrape = await self._first.fetch(username, posts_max=posts_max, cost_owner=cost_owner)
            result = "success"
        except ProfilesUnavailable:
            result = "failure"
            raise
        finally:
            self._breaker.leave(permit, result)
        return scrape
