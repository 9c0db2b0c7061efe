"""Checks of the providers with the configured keys, each with its cheapest call."""

import time
from collections.abc import AsyncGenerator, Awaitable
from typing import Any

import msgspec

from core.wiring.application import Application
from shared.errors import DomainError
from shared.llm import CostOwner

USERNAME = "instagram"  # a profile that will not disappear


class ProviderCheck(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    what: str
    is_answered: bool
    detail: str
    duration_ms: float


async def check_providers(application: Application) -> AsyncGenerator[ProviderCheck]:
    """Yields one check after another as they complete. The calls to models and scrapers cost money and are
    recorded like any other call; Stripe's is free.
    """
    providers, payments = application.resources.providers, application.resources.payments
    gateway = providers.gateway
    began_s = time.monotonic()
    async for model, kind in gateway.check():
        yield _check(model.provider, model.name, kind, began_s, is_answered=kind == "answered")
        began_s = time.monotonic()
    yield await _checked("openai", "embeddings", gateway.embed(["check"], CostOwner()))
    look = providers.profiles.read(USERNAME, "light", cost_owner=CostOwner(), is_bypassed=True)
    yield await _checked("apify", f"profile @{USERNAME}", look)
    if payments.stripe_reader is not None:
        yield await _checked("stripe", "prices", payments.api.get("/v1/prices", limit=1))


async def _checked(provider: str, what: str, call: Awaitable[Any]) -> ProviderCheck:
    began_s = time.monotonic()
    try:
        answer = await call
    except DomainError as error:
        return _check(provider, what, error.code, began_s, is_answered=False)
    provider = getattr(answer, "provider", provider)  # the fallback may have responded
    return _check(provider, what, "answered", began_s, is_answered=True)


def _check(provider: str, what: str, detail: str, began_s: float, *, is_answered: bool) -> ProviderCheck:
    duration_ms = (time.monotonic() - began_s) * 1_000
    return ProviderCheck(
        provider=provider, what=what, is_answered=is_answered, detail=detail, duration_ms=duration_ms
    )
