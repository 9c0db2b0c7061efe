"""Cache of scraped profiles in the object store."""

import asyncio
from datetime import datetime

import structlog

from features.analysis.application.ports import ProfileCache
from features.analysis.domain.profile.freshness import DEPTHS, depth_of
from features.analysis.domain.profile.profile import Scrape
from infrastructure.object_store.port import ObjectStore, ObjectStoreUnavailable
from infrastructure.object_store.profile_codec import SCHEMA, CacheEntryCorrupt, packed, unpacked

PREFIX = "profiles/"
READ_DEADLINE_S = 0.75  # a scrape takes eight seconds: waiting longer is not worthwhile
WRITE_DEADLINE_S = 3.0

log: structlog.stdlib.BoundLogger = structlog.get_logger("profile_cache")


class CachedProfiles(ProfileCache):
    """One entry per depth. With ``takes_simulated=False`` entries of a simulator are ignored and later
    replaced.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        takes_simulated: bool = True,
        read_deadline_s: float = READ_DEADLINE_S,
        write_deadline_s: float = WRITE_DEADLINE_S,
    ) -> None:
        self._store = store
        self._takes_simulated = takes_simulated
        self._read_deadline_s = read_deadline_s
        self._write_deadline_s = write_deadline_s

    async def find(self, username: str, *, posts_min: int) -> Scrape | None:
        depths = [depth for depth in DEPTHS if depth >= posts_min]
        found = await asyncio.gather(*(self._entry(username, depth) for depth in depths))
        return max((scrape for scrape in found if scrape), key=_scraped_at, default=None)

    async def save(self, username: str, scrape: Scrape) -> None:
        depth = depth_of(scrape.posts_asked)
        if depth is None:
            return  # fewer posts than any analysis needs
        try:
            data = packed(username, depth, scrape)
            async with asyncio.timeout(self._write_deadline_s):
                await self._store.put(_key(username, depth), data)
        except (CacheEntryCorrupt, ObjectStoreUnavailable, TimeoutError) as error:
            log.warning("profile_not_cached", username=username, reason=_named(error))

    async def delete(self, username: str) -> None:
        await asyncio.gather(*(self._remove(_key(username, depth)) for depth in DEPTHS))

    async def _entry(self, username: str, depth: int) -> Scrape | None:
        key = _key(username, depth)
        try:
            async with asyncio.timeout(self._read_deadline_s):
                data = await self._store.get(key)
        except (ObjectStoreUnavailable, TimeoutError) as error:
            log.warning("profile_not_read", key=key, reason=_named(error))
            return None
        if data is None:
            return None
        try:
            scrape = unpacked(username, depth, data)
        except CacheEntryCorrupt as error:
            log.info("cache_entry_rejected", key=key, reason=error.reason)
            await self._remove(key)
            return None
        return scrape if self._takes_simulated or not scrape.is_simulated else None

    async def _remove(self, key: str) -> None:
        try:
            async with asyncio.timeout(self._write_deadline_s):
                await self._store.delete(key)
        except (ObjectStoreUnavailable, TimeoutError) as error:
            log.warning("entry_not_removed", key=key, reason=_named(error))


def _key(username: str, depth: int) -> str:
    return f"{PREFIX}instagram/{username}/v{SCHEMA}/{depth}"


def _scraped_at(scrape: Scrape) -> datetime:
    return scrape.scraped_at


def _named(error: Exception) -> str:
    if isinstance(error, CacheEntryCorrupt | ObjectStoreUnavailable):
        return error.reason
    return "deadline"
