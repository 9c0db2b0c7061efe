import asyncio

from features.analysis.application.ports import CacheRecord, ProfileCache, ProfileSource
from features.analysis.domain.errors import ProfilesUnavailable
from features.analysis.domain.profile.freshness import depth_of
from tests.fakes.profile_reader import scrape_of


class FakeSource(ProfileSource):
    """Returns the scrape that the test has set, with the current time, after the gate opens."""

    def __init__(self, now):
        self.now = now
        self.found = scrape_of
        self.fetches = []
        self.cancelled = 0
        self.is_down = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def fetch(self, username, *, posts_max, cost_owner):
        self.fetches.append((username, posts_max, cost_owner))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.is_down:
            raise ProfilesUnavailable(username=username, retry_after_s=60)
        return self.found(username, posts_asked=posts_max, posts=posts_max, age=self.now.age)


class FakeKnown(ProfileCache):
    def __init__(self):
        self.entries = {}

    async def find(self, username, *, posts_min):
        found = [
            scrape
            for (name, depth), scrape in self.entries.items()
            if name == username and depth >= posts_min
        ]
        return max(found, key=lambda scrape: scrape.scraped_at, default=None)

    async def save(self, username, scrape):
        self.entries[username, depth_of(scrape.posts_asked)] = scrape

    async def delete(self, username):
        self.entries = {key: scrape for key, scrape in self.entries.items() if key[0] != username}

    def depths(self, username="ann"):
        return sorted(depth for name, depth in self.entries if name == username)


class FakeRecord(CacheRecord):
    def __init__(self):
        self.points = []

    def __call__(self, *, is_hit, reason, username, age_s, cost_owner):
        self.points.append((is_hit, reason, username, age_s, cost_owner))

    @property
    def reasons(self):
        return [(is_hit, reason) for is_hit, reason, *_ in self.points]
