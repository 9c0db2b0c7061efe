import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from features.costs.domain.prices import PriceBook
from infrastructure.monitoring.cost_tracker import CostTracker
from infrastructure.provider_endpoint import ProviderEndpoint
from infrastructure.scraping.apify import ApifyLimits, ApifyProfiles
from tests.integration.scraping.apify_server import ApifyServer

KEY = "apify_api_canary0123456789"


class Calls(list):
    """The log of scrapes."""

    async def record_scrape(self, call):
        await asyncio.sleep(0)  # suspends like a database
        self.append(call)

    @property
    def outcomes(self):
        return [call.outcome for call in self]


class Prices(PriceBook):
    def __init__(self):
        super().__init__([], [])

    def of_units(self, provider, unit, count, _at):
        return {
            ("apify", "run"): 3_000_000,
            ("scraperapi", "credit"): 490_000,
            ("scraperapi", "request"): 490_000,
        }[provider, unit] * count


class Sleeps(list):
    """Records delays instead of waiting; ``meanwhile`` runs during each delay."""

    meanwhile = None

    async def __call__(self, delay_s):
        self.append(delay_s)
        if self.meanwhile is not None:
            await self.meanwhile()
        await asyncio.sleep(0)


class OpenSlots:
    def __init__(self, *, has_spare=False):
        self._has_spare = has_spare

    @asynccontextmanager
    async def acquire(self, _name, _limit):
        yield

    @asynccontextmanager
    async def acquire_now(self, _name, _limit):
        yield self._has_spare


def now():
    return datetime.now(UTC)


@pytest.fixture
async def server():
    server = ApifyServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def calls():
    return Calls()


@pytest.fixture
def sleeps():
    return Sleeps()


@pytest.fixture
def prices():
    return Prices()


@pytest.fixture
def make_profiles(server, calls, prices, sleeps):
    def make(slots=None, **limits):
        async def where():
            return ProviderEndpoint(server.url, KEY, is_simulated=True)

        limits = {"poll_s": 0.05, "call_s": 0.4, "scrape_s": 20.0, **limits}
        return ApifyProfiles(
            *(where, slots or OpenSlots(), CostTracker(calls, prices)),
            now=now,
            limits=ApifyLimits(**limits),
            sleep=sleeps,
            jitter=lambda: 0.0,
        )

    return make


@pytest.fixture
def profiles(make_profiles):
    return make_profiles()
