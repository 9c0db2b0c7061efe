"""Models, scrapers and the object store: adapters with the endpoints of real providers or simulators."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from core.api.health import HealthCheck, Mode
from core.api.health_checks import check_models, check_provider
from core.settings.providers import MODELS, PAYMENTS, PROVIDERS
from core.settings.settings import InvalidSettings, Settings
from core.wiring.bootstrap import Runtime
from core.wiring.cost_recorders import CostRecorders
from core.wiring.provider_endpoints import ProviderEndpoints
from features.analysis.application.ports import ProfileSource
from features.analysis.application.profile_reader import ProfileReader
from infrastructure.ai.cloudflare import CloudflareGateway
from infrastructure.ai.gateway import Gateway
from infrastructure.ai.model_catalog import ModelCatalog, ModelCatalogInvalid, read_model_catalog
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
from shared.clock import utc_now
from simulators.supervisor import Simulators

HOUR_S = 3_600


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
    runtime: Runtime, database: Database, recorders: CostRecorders, simulators: Simulators
) -> AsyncGenerator[Providers]:
    endpoints = ProviderEndpoints(runtime, simulators)
    async with AsyncExitStack() as stack:
        objects = _objects(runtime.settings)
        stack.push_async_callback(objects.close)
        apify = _apify(runtime.settings, endpoints, database, recorders)
        source = _source(apify, endpoints, recorders, stack)
        cache = CachedProfiles(objects, takes_simulated=endpoints.is_simulated("apify"))
        profiles = ProfileReader(source, cache, ProfileCacheMetrics(recorders.points), utc_now)
        gateway = _gateway(runtime.settings, endpoints, database, recorders, stack)
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
    first: ApifyProfiles | None, endpoints: ProviderEndpoints, recorders: CostRecorders, stack: AsyncExitStack
) -> ProfileSource:
    """Apify, with ScraperAPI as the fallback if Apify fails or is not configured."""
    scraper_api = endpoints.resolver("scraperapi")
    second = None
    if scraper_api is not None:
        second = ScraperApiProfiles(scraper_api, recorders.costs, now=utc_now)
        stack.push_async_callback(second.close)
    if first is None:
        assert second is not None, "the settings require one of the two"
        return second
    return first if second is None else FailoverProfiles(first, second)


def _apify(
    settings: Settings,
    endpoints: ProviderEndpoints,
    database: Database,
    recorders: CostRecorders,
) -> ApifyProfiles | None:
    resolver = endpoints.resolver("apify")
    if resolver is None:
        return None
    slots = PostgresSemaphore(database)
    limits = ApifyLimits(
        concurrent_max=settings.providers.scrapes_max,
        usd_max=Decimal(settings.providers.scrape_cents_max) / 100,
    )
    return ApifyProfiles(resolver, slots, recorders.costs, now=utc_now, limits=limits)


def _gateway(
    settings: Settings,
    endpoints: ProviderEndpoints,
    database: Database,
    recorders: CostRecorders,
    stack: AsyncExitStack,
) -> Gateway:
    cloudflare = _cloudflare(settings)
    providers = _models(endpoints, cloudflare)
    gateway = Gateway(
        catalog=_catalog(settings, providers),
        providers=providers,
        embedding_providers=_embeddings(endpoints, cloudflare, stack),
        costs=recorders.costs,
        completions=_completion_cache(settings, database),
        takes_simulated=endpoints.is_simulated("openai"),
        slots_max=settings.providers.model_calls_max,
    )
    stack.push_async_callback(gateway.close)
    return gateway


def _models(endpoints: ProviderEndpoints, cloudflare: CloudflareGateway | None) -> dict[str, ModelProvider]:
    openai, anthropic = endpoints.resolver("openai"), endpoints.resolver("anthropic")
    providers: dict[str, ModelProvider] = {}
    if openai is not None:
        providers["openai"] = OpenAIModels(openai, cloudflare)
    if anthropic is not None:
        providers["anthropic"] = AnthropicModels(anthropic, cloudflare)
    return providers


def _embeddings(
    endpoints: ProviderEndpoints, cloudflare: CloudflareGateway | None, stack: AsyncExitStack
) -> dict[str, OpenAIEmbeddings]:
    openai = endpoints.resolver("openai")
    if openai is None:
        return {}
    embeddings = OpenAIEmbeddings(openai, cloudflare)
    stack.push_async_callback(embeddings.close)
    return {"openai": embeddings}


def _completion_cache(settings: Settings, database: Database) -> PostgresCompletionCache | None:
    cached_h = settings.providers.completion_cache_h
    return PostgresCompletionCache(database, remembered_for_s=cached_h * HOUR_S) if cached_h else None


def _catalog(settings: Settings, providers: dict[str, ModelProvider]) -> ModelCatalog:
    try:
        return read_model_catalog(settings.providers.models, providers=providers)
    except ModelCatalogInvalid as error:
        raise InvalidSettings(settings.environment, [f"OSLIRA_MODELS: {error}"]) from None


def _cloudflare(settings: Settings) -> CloudflareGateway | None:
    providers = settings.providers
    if not providers.cloudflare_account:
        return None
    return CloudflareGateway(
        account=providers.cloudflare_account,
        gateway=providers.cloudflare_gateway,
        token=providers.cloudflare_token,
        cache_ttl_s=providers.completion_cache_h * HOUR_S,
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
