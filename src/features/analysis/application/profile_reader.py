"""Profiles from the cache while fresh enough, otherwise from a provider."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from features.analysis.application.ports import CacheRecord, ProfileCache, ProfileSource
from features.analysis.domain.errors import ProfileIsPrivate, ProfileNotFound, ProfileRestricted
from features.analysis.domain.profile.freshness import DEPTHS, Change, Verdict, age_s, changes, judge
from features.analysis.domain.profile.profile import (
    POSTS_NEEDED,
    Outcome,
    Profile,
    Scrape,
    username_of,
)
from shared.clock import Clock
from shared.errors import DomainError
from shared.ids import AnalysisType
from shared.llm import CostOwner
from shared.single_flight import SingleFlight

Reason = Verdict | Literal["absent", "bypassed", "shared"]

INACCESSIBLE: dict[Outcome, type[DomainError]] = {
    "private": ProfileIsPrivate,
    "not_found": ProfileNotFound,
    "restricted": ProfileRestricted,
}


class ReadProfile(msgspec.Struct, frozen=True, kw_only=True):
    """At most as many of the newest posts as the analysis needs, from the cache or from a provider."""

    profile: Profile
    scraped_at: datetime
    age_s: float
    is_cached: bool  # no fetch was made for this reader
    is_simulated: bool
    provider: str
    changes: tuple[Change, ...] = ()  # compared with the cached scrapes


class ProfileRead(NamedTuple):
    scrape: Scrape
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileReader:
    """Raises ProfileIsPrivate, ProfileNotFound, ProfileRestricted and ProfilesUnavailable."""

    source: ProfileSource
    cache: ProfileCache
    record: CacheRecord
    now: Clock
    _fetches: SingleFlight[ProfileRead] = field(default_factory=SingleFlight[ProfileRead])

    async def read(
        self, username: str, analysis_type: AnalysisType, *, cost_owner: CostOwner, is_bypassed: bool = False
    ) -> ReadProfile:
        """Fetches the profile when no cached scrape is fresh enough or the cache is bypassed. Concurrent
        readers share one fetch (single flight); its cost belongs to the first reader.
        """
        username = username_of(username)
        reason, cached = (
            ("bypassed", None) if is_bypassed else await self._find_cached(username, analysis_type)
        )
        if cached is not None and reason == "hit":
            self._record_lookup(reason, username, cached, cost_owner)
            return self._delivered(username, analysis_type, ProfileRead(cached), is_cached=True)
        fetch_key = (username, POSTS_NEEDED[analysis_type])
        is_shared = fetch_key in self._fetches
        self._record_lookup("shared" if is_shared else reason, username, cached, cost_owner)
        # A failed fetch raises even if an older scrape is cached, because the customer pays for an analysis
        # of current data.
        fetched = await self._fetches.join(fetch_key, partial(self._fetch, *fetch_key, cost_owner))
        return self._delivered(username, analysis_type, fetched, is_cached=is_shared)

    async def _find_cached(self, username: str, analysis_type: AnalysisType) -> tuple[Reason, Scrape | None]:
        cached = await self.cache.find(username, posts_min=POSTS_NEEDED[analysis_type])
        if cached is None and POSTS_NEEDED[analysis_type] > DEPTHS[0]:
            cached = await self.cache.find(username, posts_min=DEPTHS[0])
        return (judge(cached, analysis_type, self.now()) if cached else "absent"), cached

    async def _fetch(self, username: str, posts_max: int, cost_owner: CostOwner) -> ProfileRead:
        scrape = await self.source.fetch(username, posts_max=posts_max, cost_owner=cost_owner)
        cached = await asyncio.gather(*(self.cache.find(username, posts_min=depth) for depth in DEPTHS))
        # After a change, older scrapes of every depth are removed; they would keep serving other analyses.
        found: dict[Change, None] = dict.fromkeys(
            change for older in cached if older for change in changes(older, scrape)
        )
        if found:
            await self.cache.delete(username)
        await self.cache.save(username, scrape)
        return ProfileRead(scrape, tuple(found))

    def _record_lookup(
        self, reason: Reason, username: str, cached: Scrape | None, cost_owner: CostOwner
    ) -> None:
        self.record(
            is_hit=reason in {"hit", "shared"},
            reason=reason,
            username=username,
            age_s=age_s(cached, self.now()) if cached else None,
            cost_owner=cost_owner,
        )

    def _delivered(
        self, username: str, analysis_type: AnalysisType, read: ProfileRead, *, is_cached: bool
    ) -> ReadProfile:
        scrape = read.scrape
        if error := INACCESSIBLE.get(scrape.outcome):
            raise error(username=username)
        assert scrape.profile is not None  # a scrape with the outcome ok has a profile
        # A deeper cached scrape must not change the result of a light analysis.
        posts = scrape.profile.posts[: POSTS_NEEDED[analysis_type]]
        return ReadProfile(
            profile=msgspec.structs.replace(scrape.profile, posts=posts),
            scraped_at=scrape.scraped_at,
            age_s=age_s(scrape, self.now()),
            is_cached=is_cached,
            is_simulated=scrape.is_simulated,
            provider=scrape.provider,
            changes=read.changes,
        )
