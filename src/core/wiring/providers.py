"""Models, scrapers and the object store: adapters with the endpoints of real providers or simulators."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from core.api.health import HealthCheck, Mode
from core.api.health_checks import check_models, check_provider
from core.settings.providers import MODELS, PAYMENTS, PROVIDERS, ProviderSettings
from core.settings.settings import InvalidSettings, Settings, read_settings
from core.wiring.bootstrap import Runtime
from core.wiring.cost_recorders import CostRecorders
from features.analysis.application.ports import ProfileSource
from features.analysis.application.profile_reader import ProfileReader
from infrastructure.ai.cloudflare import CloudflareGateway
from infrastructure.ai.gateway import Gateway
from infrastructure.ai.model_catalog import ModelCatalogInvalid, read_model_catalog
from infrastructure.ai.providers.anthropic import AnthropicModels
from infrastructure.ai.providers.base import ModelProvider
from infrastructure.ai.providers.openai import OpenAIModels
from infrastructure.ai.providers.openai_embeddings import OpenAIEmbeddings
from infrastructure.database.ai.completion_cache import PostgresCompletionCache
from infrastructure.database.clients import Database
from infrastructure.database.costs.metrics import ProfileCacheMetrics
from infrastructure.database.semaphore import PostgresSemaphore
from infrastructure.object_store.local import LocalObjectStore
from infrastructure.object_store.port import ObjectStore
from infrastructure.object_store.profile_cache import CachedProfiles
from infrastructure.object_store.s3 import S3Endpoint, S3ObjectStore
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint
from infrastructure.scraping.apify import ApifyLimits, ApifyProfiles
from infrastructure.scraping.failover import FailoverProfiles
from infrastructure.scraping.scraper_api import ScraperApiProfiles
from shared.clock import utc_now
from simulators.supervisor import Simulators

HOUR_S = 3_600
REMEMBERED_FOR_S = 10.0
SIMULATED_KEY = "simulated"  # only simulators accept it
# Paths below the simulators' address.
PATHS = {
    "openai": "/openai/v1",
    "anthropic": "/anthropic",
    "apify": "/apify",
    "scraperapi": "/scraperapi",
    "stripe": "/stripe",
}


class ProviderEndpoints:
    def __init__(self, runtime: Runtime, simulators: Simulators) -> None:
        self._runtime = runtime
        self._simulators = simulators
        self._providers = runtime.settings.providers
        self._read_at_s = time.monotonic()

    def where(self, provider: str) -> EndpointResolver | None:
        """Returns None if the provider is neither configured nor simulated."""
        if provider in self._providers.real:

            async def real() -> ProviderEndpoint:
                providers = await self._current()
                return ProviderEndpoint(providers.addresses.get(provider, ""), providers.keys[provider])

            return real
        if provider not in self._providers.simulated or self._runtime.settings.environment == "production":
            return None

        async def simulated() -> ProviderEndpoint:
            address = await self._simulators.address()
            return ProviderEndpoint(address + PATHS[provider], SIMULATED_KEY, is_simulated=True)

        return simulated

    def is_simulated(self, provider: str) -> bool:
        return provider in self._providers.simulated

    async def _current(self) -> ProviderSettings:
        """Reads the settings from the secrets manager again, because a key may have been rotated. If a
        provider's key was removed, the previous settings stay in use until the process ends.
        """
        if self._runtime.secrets is not None and time.monotonic() - self._read_at_s > REMEMBERED_FOR_S:
            self._read_at_s = time.monotonic()
            current = (await asyncio.to_thread(read_settings, self._runtime.lookup)).providers
            if self._providers.real <= current.real:
                self._providers = current
        return self._providers


@dataclass(frozen=True, slots=True)
class Providers:
    gateway: Gateway
    profiles: ProfileReader
    objects: ObjectStore
    preparations: tuple[Callable[[], Awaitable[None]], ...]  # none of them raises

    async def prepare(self) -> None:
        """Import the clients in advance: it takes seconds, which the first run would otherwise wait."""
        await asyncio.gather(*(prepare() for prepare in self.preparations))


@asynccontextmanager
async def open_providers(
    runtime: Runtime, database: Database, books: CostRecorders, simulators: Simulators
) -> AsyncGenerator[Providers]:
    outside = ProviderEndpoints(runtime, simulators)
    async with AsyncExitStack() as stack:
        objects = _objects(runtime.settings)
        stack.push_async_callback(objects.close)
        apify = _apify(runtime.settings, outside, database, books)
        source = _source(apify, outside, books, stack)
        known = CachedProfiles(objects, takes_simulated=outside.is_simulated("apify"))
        profiles = ProfileReader(source, known, ProfileCacheMetrics(books.points), utc_now)
        gateway = _gateway(runtime.settings, outside, database, books, stack)
        preparations = (gateway.prepare,) if apify is None else (gateway.prepare, apify.prepare)
        yield Providers(gateway, profiles, objects, preparations)


def _objects(settings: Settings) -> ObjectStore:
    if not settings.object_store_bucket:
        return LocalObjectStore(settings.data_dir / "objects")
    return S3ObjectStore(
        S3Endpoint(
            bucket=settings.object_store_bucket,
            endpoint_url=settings.object_store_url,
            access_key_id=settings.object_store_key_id,
            secret_access_key=settings.object_store_secret,
        )
    )


def _source(
    first: ApifyProfiles | None, outside: ProviderEndpoints, books: CostRecorders, stack: AsyncExitStack
) -> ProfileSource:
    """Apify, with ScraperAPI as the fallback if Apify fails or is not configured."""
    scraper_api = outside.where("scraperapi")
    second = None
    if scraper_api is not None:
        second = ScraperApiProfiles(scraper_api, books.costs, now=utc_now)
        stack.push_async_callback(second.close)
    if first is None:
        assert second is not None, "settings demand one of the two"
        return second
    return first if second is None else FailoverProfiles(first, second)


def _apify(
    settings: Settings,
    outside: ProviderEndpoints,
    database: Database,
    books: CostRecorders,
) -> ApifyProfiles | None:
    where = outside.where("apify")
    if where is None:
        return None
    slots = PostgresSemaphore(database)
    limits = ApifyLimits(
        concurrent_max=settings.providers.scrapes_max,
        usd_max=Decimal(settings.providers.scrape_cents_max) / 100,
    )
    return ApifyProfiles(where, slots, books.costs, now=utc_now, limits=limits)


def _gateway(
    settings: Settings,
    outside: ProviderEndpoints,
    database: Database,
    books: CostRecorders,
    stack: AsyncExitStack,
) -> Gateway:
    chosen = settings.providers
    front = _front(settings)
    openai, anthropic = outside.where("openai"), outside.where("anthropic")
    providers: dict[str, ModelProvider] = {}
    embeddings: dict[str, OpenAIEmbeddings] = {}
    if openai is not None:
        providers["openai"] = OpenAIModels(openai, front)
        embeddings["openai"] = OpenAIEmbeddings(openai, front)
        stack.push_async_callback(embeddings["openai"].close)
    if anthropic is not None:
        providers["anthropic"] = AnthropicModels(anthropic, front)
    answers = None
    if chosen.completion_cache_h:
        answers = PostgresCompletionCache(database, remembered_for_s=chosen.completion_cache_h * HOUR_S)
    try:
        catalog = read_model_catalog(chosen.models, providers=providers)
    except ModelCatalogInvalid as error:
        raise InvalidSettings(settings.environment, [f"OSLIRA_MODELS: {error}"]) from None
    gateway = Gateway(
        catalog=catalog,
        providers=providers,
        embedding_providers=embeddings,
        costs=books.costs,
        completions=answers,
        takes_simulated=outside.is_simulated("openai"),
        slots_max=chosen.model_calls_max,
    )
    stack.push_async_callback(gateway.close)
    return gateway


def _front(settings: Settings) -> CloudflareGateway | None:
    chosen = settings.providers
    if not chosen.cloudflare_account:
        return None
    return CloudflareGateway(
        account=chosen.cloudflare_account,
        gateway=chosen.cloudflare_gateway,
        token=chosen.cloudflare_token,
        cache_ttl_s=chosen.completion_cache_h * HOUR_S,
    )


@asynccontextmanager
async def simulators_of(runtime: Runtime) -> AsyncGenerator[Simulators]:
    """One process serves all simulators. It starts when one of them is needed first."""
    identity = runtime.settings.identity
    scale = str(runtime.settings.providers.simulated_latency)
    simulators = Simulators((str(runtime.settings.data_dir), identity.issuer, identity.audience, scale))
    try:
        yield simulators
    finally:
        await simulators.close()


def provider_health_checks(settings: Settings, gateway: Gateway) -> dict[str, HealthCheck]:
    checks: dict[str, HealthCheck] = {}
    for provider in PROVIDERS.keys() - PAYMENTS:
        mode = provider_mode(settings, provider)
        check = partial(check_models, gateway) if provider in MODELS else check_provider
        checks[provider] = HealthCheck(mode, partial(check, provider, mode))
    return checks


def provider_mode(settings: Settings, provider: str) -> Mode:
    if provider in settings.providers.real:
        return "real"
    is_sold = settings.environment == "production"  # simulated results must not be sold
    return "simulated" if provider in settings.providers.simulated and not is_sold else "absent"
