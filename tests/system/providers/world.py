"""Model and profile clients, wired as in the product, on the simulators and with a fast clock."""

import asyncio
import re
import time
from uuid import uuid4

import msgspec

from core.wiring.provider_endpoints import PATHS
from features.analysis.application.profile_reader import ProfileReader
from infrastructure.ai.gateway import Gateway
from infrastructure.ai.model_catalog import FILE, read_model_catalog
from infrastructure.ai.providers.anthropic import AnthropicModels
from infrastructure.ai.providers.openai import OpenAIModels
from infrastructure.ai.providers.openai_embeddings import OpenAIEmbeddings
from infrastructure.ai.routing.fallback_policy import FallbackLimits
from infrastructure.ai.routing.timing import TimeSource
from infrastructure.database.ai.completion_cache import PostgresCompletionCache
from infrastructure.database.costs.metrics import ProfileCacheMetrics
from infrastructure.database.semaphore import PostgresSemaphore
from infrastructure.monitoring.cost_tracker import CostTracker
from infrastructure.object_store.local import LocalObjectStore
from infrastructure.object_store.profile_cache import CachedProfiles
from infrastructure.provider_endpoint import ProviderEndpoint
from infrastructure.scraping.apify import ApifyLimits, ApifyProfiles
from infrastructure.scraping.failover import FailoverProfiles
from infrastructure.scraping.scraper_api import ScraperApiProfiles
from shared.clock import utc_now
from shared.llm import CostOwner, StructuredPrompt

LIGHT = "analysis.light"
OPENAI, ANTHROPIC = "POST /openai/v1/responses", "POST /anthropic/v1/messages"
EMBEDDINGS = "POST /openai/v1/embeddings"
PROFILE_RUNS = "/apify/v2/actors/apify~instagram-profile-scraper/runs"
SCRAPER_API = "GET /scraperapi"
STUCK_S = 30.0  # limit after which a test counts as hanging
QUICK = ApifyLimits(scrape_s=20.0, poll_s=0.05, call_s=3.0, slot_wait_s=10.0)


class Verdict(msgspec.Struct, frozen=True):
    score: int
    reason: str


class JumpingClock:
    """Clock that jumps instead of sleeping and records the waits."""

    def __init__(self):
        self.ahead_s = 0.0
        self.waits = []

    def monotonic_s(self):
        return time.monotonic() + self.ahead_s

    async def sleep(self, duration_s):
        self.waits.append(duration_s)
        self.ahead_s += duration_s
        await asyncio.sleep(0)

    def clocks(self):
        return TimeSource(monotonic_s=self.monotonic_s, sleep=self.sleep, random=lambda: 0.0)


def model_catalog(deadline_s=None):
    """The product's model table, optionally with shorter deadlines for tests that wait for one."""
    text = FILE.read_text("utf-8")
    if deadline_s is not None:
        text = re.sub(r"(?m)^deadline_s = .*$", f"deadline_s = {deadline_s}", text)
    return read_model_catalog(text=text)


class Outside:
    """Provider clients of one process. All costs are attributed to one run of one account."""

    def __init__(self, simulators, database, books, folder, account_id):
        self.simulators = simulators
        self.clock = JumpingClock()
        self.cost_owner = CostOwner(account_id=account_id, run_id=uuid4())
        self._database = database
        self._books = books
        self._folder = folder
        self._opened = []

    def where(self, provider):
        async def where():
            return ProviderEndpoint(self.simulators.address + PATHS[provider], "simulated", is_simulated=True)

        return where

    def gateway(self, *, deadline_s=None, front=None, where=None, remembers=True, **options):
        where = where or self.where
        answers = PostgresCompletionCache(self._database, remembered_for_s=3_600) if remembers else None
        embeddings = OpenAIEmbeddings(where("openai"), front)
        gateway = Gateway(
            catalog=model_catalog(deadline_s),
            providers={
                "openai": OpenAIModels(where("openai"), front),
                "anthropic": AnthropicModels(where("anthropic"), front),
            },
            embedding_providers={"openai": embeddings},
            costs=CostTracker(self._books.calls, self._books.prices, monotonic_s=self.clock.monotonic_s),
            completions=answers,
            limits=FallbackLimits(attempt_min_s=0.2),
            clocks=self.clock.clocks(),
            **options,
        )
        self._opened += [gateway, embeddings]
        return gateway

    def source(self, *, database=None, **limits):
        """Apify with ScraperAPI as the fallback."""
        slots = PostgresSemaphore(database or self._database)
        options = {"now": utc_now, "sleep": self.clock.sleep, "jitter": lambda: 0.0}
        limits = msgspec.structs.replace(QUICK, **limits)
        first = ApifyProfiles(self.where("apify"), slots, self._books.costs, limits=limits, **options)
        second = ScraperApiProfiles(
            self.where("scraperapi"),
            self._books.costs,
            response_s=limits.call_s,
            scrape_s=limits.scrape_s,
            **options,
        )
        self._opened.append(second)
        return FailoverProfiles(first, second)

    def profiles(self, *, now=utc_now, **limits):
        objects = LocalObjectStore(self._folder)
        self._opened.append(objects)
        record = ProfileCacheMetrics(self._books.points)
        return ProfileReader(self.source(**limits), CachedProfiles(objects), record, now)

    def prompt(self, task=LIGHT, **changes):
        asked = StructuredPrompt(
            task=task,
            cached_prefix=("You judge profiles.", "The business sells looms."),
            user_message=f"Who is {uuid4().hex}?",
            output_type=Verdict,
            cost_owner=self.cost_owner,
        )
        return msgspec.structs.replace(asked, **changes)

    async def asked(self, *routes):
        requests = (await self.simulators.state())["requests"]
        return [requests.get(route, 0) for route in routes]

    async def close(self):
        for opened in self._opened:
            await opened.close()
