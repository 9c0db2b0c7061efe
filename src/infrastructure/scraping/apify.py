"""Instagram profiles via Apify: https://apify.com/apify/instagram-profile-scraper, and for more posts
https://apify.com/apify/instagram-scraper.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from decimal import Decimal
from typing import Any

import msgspec
import structlog

from features.analysis.application.ports import ProfileSource
from features.analysis.domain.errors import ProfilesUnavailable
from features.analysis.domain.profile.profile import Post, Profile, Scrape
from infrastructure.monitoring.cost_tracker import CostTracker, ScrapeRequest
from infrastructure.provider_endpoint import ClientPerEndpoint, EndpointResolver, ProviderEndpoint
from infrastructure.resilience.semaphore import DistributedSemaphore, SlotsBusy
from infrastructure.scraping.apify_mapping import MappedProfile, newest_first, read_posts, read_profile
from infrastructure.scraping.apify_scrape import (
    POLL_S,
    ActorRunRequest,
    ActorRuns,
    ApifyScrape,
    ScrapeReading,
)
from infrastructure.scraping.errors import ScrapeError, ScrapeRetries, Sleep, caller_retry_after_s
from shared.cancellation import run_uncancelled
from shared.clock import Clock
from shared.llm import CostOwner

PROVIDER = "apify"
PROFILE_ACTOR = "apify~instagram-profile-scraper"
POSTS_ACTOR = "apify~instagram-scraper"
SLOTS_NAME = "scrapes"
SLOTS_MAX = 10
LATEST_POSTS_MAX = 12  # returned by the profile actor
PROFILE_ITEMS_MAX = 5
PINNED_POSTS_MAX = 5  # listed first, and possibly in addition to the requested ones

log: structlog.stdlib.BoundLogger = structlog.get_logger("scraping")


class ApifyLimits(msgspec.Struct, frozen=True, kw_only=True):
    scrape_s: float = 240.0
    slot_wait_s: float = 300.0
    run_s: float = 110.0  # Apify's own timeout, in case this process dies
    usd_max: Decimal = Decimal("0.50")  # minimum accepted by these actors
    memory_mbytes: int | None = None
    concurrent_max: int = SLOTS_MAX
    poll_s: float = POLL_S
    call_s: float = 15.0


class ApifyProfiles(ProfileSource):
    """The profile actor returns the twelve newest posts; more posts need a second run. With a second slot
    both runs are concurrent, which halves the time, and an unnecessary second run is aborted. Without one the
    second run follows the first, and only if there are more posts.
    """

    def __init__(
        self,
        resolve_endpoint: EndpointResolver,
        slots: DistributedSemaphore,
        costs: CostTracker,
        *,
        now: Clock,
        limits: ApifyLimits = ApifyLimits(),  # noqa: B008  frozen
        profile_actor: str = PROFILE_ACTOR,
        posts_actor: str = POSTS_ACTOR,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._resolve_endpoint = resolve_endpoint
        self._slots = slots
        self._costs = costs
        self._now = now
        self._limits = limits
        self._profile_actor = profile_actor
        self._posts_actor = posts_actor
        self._sleep = sleep
        self._jitter = jitter
        self._clients = ClientPerEndpoint(self._create)

    async def fetch(self, username: str, *, posts_max: int, cost_owner: CostOwner) -> Scrape:
        """Raises ProfilesUnavailable for Apify's failures. Errors of the semaphore and its database
        propagate.
        """
        async with self._slot():
            endpoint = await self._resolve_endpoint()
            request = ScrapeRequest(PROVIDER, username, posts_max, cost_owner, endpoint.is_simulated)
            async with self._clients.borrow(endpoint) as runs:
                if posts_max <= LATEST_POSTS_MAX:
                    return await self._scrape(runs, request)
                concurrent_max = self._limits.concurrent_max
                async with self._slots.acquire_now(SLOTS_NAME, concurrent_max) as has_second:
                    return await self._scrape(runs, request, has_second=has_second)

    @asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None]:
        limits = self._limits
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(limits.slot_wait_s):
                    await stack.enter_async_context(self._slots.acquire(SLOTS_NAME, limits.concurrent_max))
            except TimeoutError:
                raise SlotsBusy(name=SLOTS_NAME) from None
            yield

    async def _scrape(self, runs: ActorRuns, request: ScrapeRequest, *, has_second: bool = False) -> Scrape:
        scrapes = [self._new_scrape(runs, request) for _ in range(2 if has_second else 1)]
        outcome = "cancelled"
        try:
            async with asyncio.timeout(self._limits.scrape_s):
                found = await self._find(scrapes, request.username, request.posts_asked)
        except (ScrapeError, TimeoutError) as error:
            outcome = _outcome_of(error)
            raise ProfilesUnavailable(
                username=request.username, retry_after_s=caller_retry_after_s(error)
            ) from None
        finally:
            await run_uncancelled(_close(scrapes, outcome))
        return Scrape(
            outcome=found.outcome,
            profile=found.profile,
            posts_asked=request.posts_asked,
            scraped_at=self._now(),
            provider=PROVIDER,
            is_simulated=request.is_simulated,
        )

    def _new_scrape(self, runs: ActorRuns, request: ScrapeRequest) -> ApifyScrape:
        retries = ScrapeRetries(self._sleep, self._jitter)
        return ApifyScrape(runs, self._costs, request, retries, sleep=self._sleep, poll_s=self._limits.poll_s)

    async def _find(self, scrapes: list[ApifyScrape], username: str, posts_max: int) -> MappedProfile:
        first, *others = scrapes
        early = [asyncio.create_task(self._posts(other, username, posts_max)) for other in others]
        try:
            found = await self._profile(first, username)
            if found.outcome != "ok" or found.profile is None:
                return found
            posts = found.profile.posts
            if _has_more_posts(found.profile, posts_max):
                more = await (early[0] if early else self._posts(first, username, posts_max))
                posts = newest_first((*posts, *more))
        finally:
            await run_uncancelled(_cancel(early))
        return MappedProfile("ok", msgspec.structs.replace(found.profile, posts=posts[:posts_max]))

    async def _profile(self, scrape: ApifyScrape, username: str) -> MappedProfile:
        def read(items: list[Any]) -> ScrapeReading[MappedProfile]:
            found = read_profile(items, username, now=self._now())
            return ScrapeReading(found, found.outcome, len(found.profile.posts) if found.profile else 0)

        request = self._request(self._profile_actor, {"usernames": [username]}, items_max=1)
        return (await scrape.run(request, read, items_max=PROFILE_ITEMS_MAX)).value

    async def _posts(self, scrape: ApifyScrape, username: str, posts_max: int) -> tuple[Post, ...]:
        def read(items: list[Any]) -> ScrapeReading[tuple[Post, ...]]:
            posts = read_posts(items, now=self._now())
            return ScrapeReading(posts, "ok", min(len(posts), posts_max))

        request = self._request(
            self._posts_actor,
            {
                "directUrls": [f"https://www.instagram.com/{username}/"],
                "resultsType": "posts",
                "resultsLimit": posts_max,
            },
            items_max=posts_max,
        )
        reading = await scrape.run(request, read, items_max=posts_max + PINNED_POSTS_MAX)
        return reading.value

    def _request(self, actor: str, actor_input: dict[str, Any], *, items_max: int) -> ActorRunRequest:
        return ActorRunRequest(
            actor=actor,
            input=actor_input,
            items_max=items_max,
            usd_max=self._limits.usd_max,
            timeout_s=self._limits.run_s,
            memory_mbytes=self._limits.memory_mbytes,
        )

    async def prepare(self) -> None:
        """Never fails. Called at startup, it saves the first scrape the time of importing the client."""
        with suppress(Exception):
            async with self._clients.borrow(await self._resolve_endpoint()):
                pass

    def _create(self, endpoint: ProviderEndpoint) -> ActorRuns:
        from infrastructure.scraping.apify_runs import ApifyRuns  # noqa: PLC0415  slow import

        return ApifyRuns(endpoint, timeout_s=self._limits.call_s)


async def _cancel(tasks: list[asyncio.Task[tuple[Post, ...]]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)  # their errors were already raised or are irrelevant


async def _close(scrapes: list[ApifyScrape], outcome: str) -> None:
    first, *others = scrapes
    await first.close(outcome)
    for other in others:
        await other.close("cancelled")


def _has_more_posts(profile: Profile, posts_max: int) -> bool:
    """A profile that has posts but reports a count of zero has an unknown number of posts."""
    available = posts_max if profile.posts and not profile.posts_count else profile.posts_count
    return posts_max > LATEST_POSTS_MAX and len(profile.posts) < min(posts_max, available)


def _outcome_of(error: ScrapeError | TimeoutError) -> str:
    if not isinstance(error, ScrapeError):
        return "timeout"
    if error.kind == "rejected":
        log.error(
            "apify_rejected_us",
            detail=error.detail,
            hint="Check the Apify token, the plan's limits, and that the account may run the actors.",
        )
    return "timeout" if error.kind == "timeout" else "unavailable"
