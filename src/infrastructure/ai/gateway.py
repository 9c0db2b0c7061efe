"""Gateway to the models: completion cache, routing with fallbacks, and usage rows."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from features.analysis.application.ports import CompletionProvider
from infrastructure.ai.completion_cache import CachedCompletion, CompletionCache, CompletionStore
from infrastructure.ai.embeddings import Embedder
from infrastructure.ai.model_catalog import Candidate, Model, ModelCatalog, ModelCatalogInvalid, Retirement
from infrastructure.ai.providers.base import EmbeddingProvider, ModelProvider
from infrastructure.ai.request_builder import RequestBuilder
from infrastructure.ai.response_format import Malformed
from infrastructure.ai.routing.attempts import Attempts
from infrastructure.ai.routing.fallback_policy import FallbackLimits
from infrastructure.ai.routing.recovery_probes import RecoveryProbes
from infrastructure.ai.routing.router import Router, RouterDependencies
from infrastructure.ai.routing.timing import TimeSource
from infrastructure.monitoring.cost_tracker import CostTracker, RequestUsage
from infrastructure.resilience.circuit_breaker import BreakerRules, BreakerView
from shared.llm import Cache, Completion, CostOwner, EmbeddedTexts, StructuredPrompt, Usage

T = TypeVar("T")

SLOTS_MAX = 64  # concurrent calls per provider


class _Request(NamedTuple):
    builder: RequestBuilder
    candidates: tuple[Candidate, ...]
    completion_key: bytes
    usage: RequestUsage
    began_s: float


class Gateway(CompletionProvider):
    def __init__(
        self,
        *,
        catalog: ModelCatalog,
        providers: Mapping[str, ModelProvider],
        embedding_providers: Mapping[str, EmbeddingProvider],
        costs: CostTracker,
        completions: CompletionStore | None = None,
        takes_simulated: bool = True,
        slots_max: int = SLOTS_MAX,
        breaker_rules: BreakerRules | None = None,
        limits: FallbackLimits | None = None,
        clocks: TimeSource | None = None,
    ) -> None:
        _check_providers(catalog, providers, embedding_providers)
        self._catalog = catalog
        self._providers = providers
        self._costs = costs
        self._clocks = clocks = clocks or TimeSource()
        self._attempts = Attempts(
            catalog.models, costs, slots_max=slots_max, rules=breaker_rules, clocks=clocks
        )
        self._probes = RecoveryProbes(providers, self._attempts)
        self._shared = RouterDependencies(
            self._attempts, self._probes, costs, limits or FallbackLimits(), clocks
        )
        self._cache = CompletionCache(completions, takes_simulated=takes_simulated)
        self._embedder = Embedder(catalog, embedding_providers, self._shared)

    async def complete(self, prompt: StructuredPrompt[T]) -> Completion[T]:
        builder = RequestBuilder(prompt, self._providers)
        candidates = self._catalog.candidates(prompt.task, self._clocks.now().date())
        request = _Request(
            builder,
            candidates,
            builder.completion_key(candidates[0]),
            RequestUsage(prompt.cost_owner, prompt.task),
            self._clocks.monotonic_s(),
        )
        cached = None if prompt.is_fresh else await self._find_cached(request)
        return cached or await self._complete(request)

    async def embed(self, texts: Sequence[str], owner: CostOwner) -> EmbeddedTexts:
        return await self._embedder.embed(texts, owner)

    async def prepare(self) -> None:
        """Create the providers' clients before the first prompt. Never fails."""
        await asyncio.gather(*(provider.prepare() for provider in self._providers.values()))

    def breakers(self) -> dict[str, BreakerView]:
        """Circuit breakers by provider and model, for the health check."""
        return self._attempts.breakers()

    async def check(self) -> AsyncGenerator[tuple[Model, str]]:
        """Send a short prompt to every text model in use today. Yields "answered" or the kind of failure."""
        today = self._clocks.now().date()
        routes = (self._catalog.route(self._catalog.task(task), today) for task in self._catalog.tasks)
        for model in dict.fromkeys(model for route in routes for model in route):
            if model.kind == "text":
                yield model, (await self._probes.check(model)).kind

    def retirements(self) -> list[Retirement]:
        """Models that retire soon, for the health check."""
        return self._catalog.warnings(self._clocks.now().date())

    async def close(self) -> None:
        """Cancel the probes, write their usage rows, and close the providers."""
        await self._probes.close()
        for provider in self._providers.values():
            await provider.close()

    async def _find_cached(self, request: _Request) -> Completion[Any] | None:
        owner = request.usage.owner
        cached = await self._cache.find(owner.account_id, request.completion_key)
        if cached is None:
            return None
        try:
            value = request.builder.format.decode(cached.text)
        except Malformed:
            return None
        row = self._costs.start_ai_call(request.usage, cached.provider, cached.model, is_attempt=False)
        await self._costs.track_ai_call(row, "answered", cache="exact", is_simulated=cached.is_simulated)
        return self._completion(request, cached, value, "exact", Usage())

    async def _complete(self, request: _Request) -> Completion[Any]:
        builder, usage = request.builder, request.usage
        task = self._catalog.task(usage.task)
        router = Router(self._shared, task, request.candidates, builder.attempt, usage)
        candidate, reply = await router.run()
        completion = CachedCompletion(
            text=reply.text,
            provider=candidate.model.provider,
            model=candidate.model.name,
            is_simulated=reply.is_simulated,
        )
        await self._cache.put(usage.owner.account_id, request.completion_key, completion)
        value = builder.format.decode(reply.text)
        if reply.is_from_gateway:
            return self._completion(request, completion, value, "gateway", Usage())
        return self._completion(request, completion, value, "none", reply.usage)

    def _completion(
        self, request: _Request, completion: CachedCompletion, value: T, cache: Cache, usage: Usage
    ) -> Completion[T]:
        return Completion(
            value=value,
            provider=completion.provider,
            model=completion.model,
            is_simulated=completion.is_simulated,
            cache=cache,
            usage=usage,
            cost_nanodollars=request.usage.cost_nanodollars,
            latency_ms=(self._clocks.monotonic_s() - request.began_s) * 1_000,
        )


def _check_providers(
    catalog: ModelCatalog,
    providers: Mapping[str, ModelProvider],
    embedding_providers: Mapping[str, EmbeddingProvider],
) -> None:
    for model in catalog.models:
        if model.provider not in (providers if model.kind == "text" else embedding_providers):
            raise ModelCatalogInvalid(f"{model.name}: no adapter for the provider {model.provider}.")
