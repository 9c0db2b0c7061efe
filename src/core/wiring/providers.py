"""Models, scrapers and the object store, with their adapters."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from core.settings.settings import InvalidSettings, Settings
from core.wiring.bootstrap import Runtime
from core.wiring.costs import CostRecorders
from core.wiring.provider_endpoints import ProviderEndpoints
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
from infrastructure.scraping.apify import ApifyLimits, ApifyProfiles
from infrastructure.scraping.failover import FailoverProfiles
from infrastructure.scraping.scraper_api import ScraperApiProfiles
from simulators.supervisor import Simulators

HOUR_S = 3_600


def utc_now() -> datetime:
    return datetime.now(UTC)


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
    place: Runtime, database: Database, books: CostRecorders, simulators: Simulators
) -> AsyncGenerator[Providers]:
    outside = ProviderEndpoints(place, simulators)
    async with AsyncExitStack() as stack:
        objects = _objects(place.settings)
        stack.push_async_callback(objects.close)
        apify = _apify(place.settings, outside, database, books)
        source = _source(apify, outside, books, stack)
        known = CachedProfiles(objects, takes_simulated=outside.is_simulated("apify"))
        profiles = ProfileReader(source, known, ProfileCacheMetrics(books.points), utc_now)
        gateway = _gateway(place.settings, outside, database, books, stack)
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
    if chosen.answers_kept_h:
        answers = PostgresCompletionCache(database, remembered_for_s=chosen.answers_kept_h * HOUR_S)
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
        cache_ttl_s=chosen.answers_kept_h * HOUR_S,
    )
