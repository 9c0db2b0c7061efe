"""Models, scrapers and stored objects, as the products use them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from core.settings import Settings, SettingsRefused
from core.wiring.costs import Books
from core.wiring.outside import Outside
from core.wiring.place import Surroundings
from features.analysis.application.ports import ProfileSource
from features.analysis.application.profiles import Profiles
from infrastructure.ai.anthropic_models import AnthropicModels
from infrastructure.ai.cloudflare import CloudflareGateway
from infrastructure.ai.gateway import Gateway
from infrastructure.ai.model_table import ModelTableInvalid, read_model_table
from infrastructure.ai.openai_embeddings import OpenAIEmbeddings
from infrastructure.ai.openai_models import OpenAIModels
from infrastructure.ai.provider import ModelProvider
from infrastructure.cache.bucket import BucketAccess, BucketStore
from infrastructure.cache.folder import FolderStore
from infrastructure.cache.objects import ObjectStore
from infrastructure.cache.profiles import CachedProfiles
from infrastructure.database.ai_answers import PostgresAnswers
from infrastructure.database.data_points import ProfileCachePoints
from infrastructure.database.leases import PostgresSlots
from infrastructure.database.sessions import Database
from infrastructure.scraping.apify import ApifyLimits, ApifyProfiles
from infrastructure.scraping.failover import FailoverProfiles
from infrastructure.scraping.scraper_api import ScraperApiProfiles
from infrastructure.simulators.supervisor import Simulators

HOUR_S = 3_600


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Providers:
    gateway: Gateway
    profiles: Profiles
    objects: ObjectStore
    preparations: tuple[Callable[[], Awaitable[None]], ...]  # none of which fails

    async def prepare(self) -> None:
        """Have the clients ready that the first run would otherwise wait for: they take seconds to import."""
        await asyncio.gather(*(prepare() for prepare in self.preparations))


@asynccontextmanager
async def open_providers(
    place: Surroundings, database: Database, books: Books, simulators: Simulators
) -> AsyncGenerator[Providers]:
    outside = Outside(place, simulators)
    async with AsyncExitStack() as stack:
        objects = _objects(place.settings)
        stack.push_async_callback(objects.close)
        apify = _apify(place.settings, outside, database, books, stack)
        source = _source(apify, outside, books, stack)
        known = CachedProfiles(objects, takes_simulated=outside.is_simulated("apify"))
        profiles = Profiles(source, known, ProfileCachePoints(books.points), utc_now)
        gateway = _gateway(place.settings, outside, database, books, stack)
        preparations = (gateway.prepare,) if apify is None else (gateway.prepare, apify.prepare)
        yield Providers(gateway, profiles, objects, preparations)


def _objects(settings: Settings) -> ObjectStore:
    if not settings.object_store_bucket:
        return FolderStore(settings.data_dir / "objects")
    return BucketStore(
        BucketAccess(
            bucket=settings.object_store_bucket,
            endpoint_url=settings.object_store_url,
            access_key_id=settings.object_store_key_id,
            secret_access_key=settings.object_store_secret,
        )
    )


def _source(
    first: ApifyProfiles | None, outside: Outside, books: Books, stack: AsyncExitStack
) -> ProfileSource:
    """Apify; ScraperAPI stands in, as far as it can, when Apify fails or is not here."""
    scraper_api = outside.where("scraperapi")
    second = None
    if scraper_api is not None:
        second = ScraperApiProfiles(scraper_api, books.calls, books.prices, now=utc_now)
        stack.push_async_callback(second.close)
    if first is None:
        assert second is not None, "settings demand one of the two"
        return second
    return first if second is None else FailoverProfiles(first, second)


def _apify(
    settings: Settings, outside: Outside, database: Database, books: Books, stack: AsyncExitStack
) -> ApifyProfiles | None:
    where = outside.where("apify")
    if where is None:
        return None
    slots = PostgresSlots(database)
    stack.push_async_callback(slots.close)
    limits = ApifyLimits(
        at_once_max=settings.providers.scrapes_max,
        usd_max=Decimal(settings.providers.scrape_cents_max) / 100,
    )
    return ApifyProfiles(where, slots, books.calls, books.prices, now=utc_now, limits=limits)


def _gateway(
    settings: Settings, outside: Outside, database: Database, books: Books, stack: AsyncExitStack
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
        answers = PostgresAnswers(database, remembered_for_s=chosen.answers_kept_h * HOUR_S)
        stack.push_async_callback(answers.close)
    try:
        table = read_model_table(chosen.models, providers=providers)
    except ModelTableInvalid as error:
        raise SettingsRefused(settings.environment, [f"OSLIRA_MODELS: {error}"]) from None
    gateway = Gateway(
        table=table,
        providers=providers,
        embedding_providers=embeddings,
        calls=books.calls,
        prices=books.prices,
        answers=answers,
        takes_simulated=outside.is_simulated("openai"),
        slots_max=chosen.model_calls_max,
        is_hedged=chosen.is_hedged,
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
