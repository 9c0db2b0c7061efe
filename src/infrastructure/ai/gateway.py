"""Gateway to the models: completion cache, single flight, routing with fallbacks, and usage records."""

import asyncio
import copy
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from features.analysis.application.ports import CompletionProvider
from features.costs.application.ports import CallLog
from features.costs.domain.provider_calls import CallOutcome
from infrastructure.ai.completion_cache import CachedCompletion, CompletionCache, CompletionStore
from infrastructure.ai.embeddings import Embedder
from infrastructure.ai.model_catalog import Model, ModelCatalog, ModelCatalogInvalid, Retirement, Task
from infrastructure.ai.providers.base import EmbeddingProvider, ModelProvider
from infrastructure.ai.routing.attempts import Attempts
from infrastructure.ai.routing.candidates import Candidate, legs_of
from infrastructure.ai.routing.fair_semaphore import Occupancy
from infrastructure.ai.routing.fallback_policy import FallbackLimits
from infrastructure.ai.routing.recovery_probes import RecoveryProbes
from infrastructure.ai.routing.router import CompletionRouter, RouterDependencies
from infrastructure.ai.routing.time_source import TimeSource
from infrastructure.ai.routing.usage import Prices, UsageRecorder
from infrastructure.ai.structured.cache_keys import answer_key
from infrastructure.ai.structured.request_builder import Prompt
from infrastructure.ai.structured.response_format import Malformed, ResponseFormat, form_of
from infrastructure.resilience.circuit_breaker import BreakerRules, BreakerView
from shared.errors import DomainError
from shared.llm import (
    Cache,
    Completion,
    CompletionMalformed,
    CompletionRefused,
    CostOwner,
    EmbeddedTexts,
    ModelsUnavailable,
    PromptRejected,
    StructuredPrompt,
    Usage,
)
from shared.single_flight import FlightCancelled, SingleFlight

T = TypeVar("T")

SLOTS_MAX = 64  # concurrent calls per provider

OUTCOMES: dict[type[DomainError], CallOutcome] = {
    CompletionMalformed: "malformed",
    CompletionRefused: "refused",
    PromptRejected: "invalid",
}


class _CompletionRequest(NamedTuple):
    question: StructuredPrompt[Any]
    task: Task
    legs: tuple[Candidate, ...]
    form: ResponseFormat[Any]
    answer_key: bytes
    began_s: float


class _CachedResult(NamedTuple):
    stored: CachedCompletion
    cache: Cache
    usage: Usage
    cost_nanodollars: int | None


class Gateway(CompletionProvider):
    def __init__(
        self,
        *,
        table: ModelCatalog,
        providers: Mapping[str, ModelProvider],
        embedding_providers: Mapping[str, EmbeddingProvider],
        calls: CallLog,
        prices: Prices,
        answers: CompletionStore | None = None,
        takes_simulated: bool = True,
        slots_max: int = SLOTS_MAX,
        breaker_rules: BreakerRules | None = None,
        patience: FallbackLimits | None = None,
        is_hedged: bool = False,
        clocks: TimeSource | None = None,
    ) -> None:
        _check_providers(table, providers, embedding_providers)
        self._table = table
        self._providers = providers
        self._clocks = clocks or TimeSource()
        self._books = UsageRecorder(calls, prices, self._clocks)
        self._attempts = Attempts(table.models, slots_max=slots_max, rules=breaker_rules, clocks=self._clocks)
        self._probes = RecoveryProbes(providers, self._attempts, self._books)
        self._means = RouterDependencies(
            self._attempts, self._probes, patience or FallbackLimits(), self._clocks, is_hedged=is_hedged
        )
        self._memory = CompletionCache(answers, takes_simulated=takes_simulated)
        self._flights: SingleFlight[_CachedResult] = SingleFlight()
        self._embedder = Embedder(table, embedding_providers, self._means, self._books)

    async def answer(self, question: StructuredPrompt[T]) -> Completion[T]:
        asked = self._asked(question)
        found = None if question.is_fresh else await self._remembered(asked)
        if found is None:
            found = await self._shared(asked)
        return Completion(
            value=asked.form.decode(found.stored.text),
            provider=found.stored.provider,
            model=found.stored.model,
            is_simulated=found.stored.is_simulated,
            cache=found.cache,
            usage=found.usage,
            cost_nanodollars=found.cost_nanodollars,
            latency_ms=(self._clocks.monotonic_s() - asked.began_s) * 1_000,
        )

    async def embed(self, texts: Sequence[str], spender: CostOwner) -> EmbeddedTexts:
        return await self._embedder.embed(texts, spender)

    async def prepare(self) -> None:
        """Create the providers' clients before the first prompt. Never fails."""
        await asyncio.gather(*(provider.prepare() for provider in self._providers.values()))

    def breakers(self) -> dict[str, BreakerView]:
        """Circuit breakers by provider and model, for the health check."""
        return self._attempts.breakers()

    def places(self) -> dict[str, Occupancy]:
        """Free slots and waiting calls, by provider."""
        return self._attempts.places()

    @property
    def questions_under_way(self) -> int:
        return len(self._flights)

    async def check(self) -> AsyncGenerator[tuple[Model, str]]:
        """Send a short prompt to every text model in use today. Yields "answered" or the kind of failure."""
        today = self._clocks.now().date()
        routes = (self._table.route(self._table.task(task), today) for task in self._table.tasks)
        for model in dict.fromkeys(model for route in routes for model in route):
            if model.kind == "text":
                yield model, (await self._probes.check(model)).kind

    def retirements(self) -> list[Retirement]:
        """Models that retire soon, for the health check."""
        return self._table.warnings(self._clocks.now().date())

    async def close(self) -> None:
        """Cancel the calls in progress, write their usage records, and close the providers."""
        await self._flights.close()
        await self._probes.close()
        for provider in self._providers.values():
            await provider.close()

    def _asked(self, question: StructuredPrompt[Any]) -> _CompletionRequest:
        task = self._table.task(question.task)
        legs = legs_of(self._table, task, self._clocks.now().date())
        form = form_of(question.answer)
        key = answer_key(question, legs[0], form.schema_bytes)
        return _CompletionRequest(question, task, legs, form, key, self._clocks.monotonic_s())

    async def _remembered(self, asked: _CompletionRequest) -> _CachedResult | None:
        stored = await self._memory.find(asked.question.spender.account_id, asked.answer_key)
        if stored is None:
            return None
        try:
            asked.form.decode(stored.text)
        except Malformed:
            return None
        found = _CachedResult(stored, "exact", Usage(), 0)
        await self._write(asked, "answered", found)
        return found

    async def _shared(self, asked: _CompletionRequest) -> _CachedResult:
        key = asked.answer_key + (b"fresh" if asked.question.is_fresh else b"")
        is_first = key not in self._flights
        try:
            found = await self._flights.join(key, partial(self._inquire, asked))
        except FlightCancelled:
            raise ModelsUnavailable(task=asked.task.name, retry_after_s=1) from None
        except asyncio.CancelledError:
            if not is_first:
                await self._write(asked, "cancelled")
            raise
        except DomainError as error:
            if is_first:
                raise
            await self._write(asked, OUTCOMES.get(type(error), "unavailable"))
            raise copy.copy(error) from None  # new per waiter, so that tracebacks do not mix
        if is_first:
            return found
        found = found._replace(cache="shared", usage=Usage(), cost_nanodollars=0)
        await self._write(asked, "answered", found)
        return found

    async def _inquire(self, asked: _CompletionRequest) -> _CachedResult:
        question = asked.question
        tally = self._books.open(question.spender, question.task)
        prompt = Prompt(question, asked.form)
        inquiry = CompletionRouter(
            self._means,
            asked.task,
            asked.legs,
            lambda leg, repair: prompt.trial(self._providers[leg.model.provider], leg, repair),
            tally,
        )
        leg, reply = await inquiry.run()
        stored = CachedCompletion(
            text=reply.text,
            provider=leg.model.provider,
            model=leg.model.name,
            is_simulated=reply.is_simulated,
        )
        await self._memory.keep(question.spender.account_id, asked.answer_key, stored)
        if reply.is_from_gateway:
            return _CachedResult(stored, "gateway", Usage(), tally.cost_nanodollars)
        return _CachedResult(stored, "none", reply.usage, tally.cost_nanodollars)

    async def _write(
        self, asked: _CompletionRequest, outcome: CallOutcome, found: _CachedResult | None = None
    ) -> None:
        """Write the usage record of a completion or a failure without an attempt of its own."""
        model = asked.legs[0].model
        tally = self._books.open(asked.question.spender, asked.task.name)
        line = tally.line_without_attempt(
            model.provider if found is None else found.stored.provider,
            model.name if found is None else found.stored.model,
            began_s=asked.began_s,
        )
        await line.write(
            outcome,
            cache="shared" if found is None else found.cache,
            is_simulated=self._attempts.is_simulated(model) if found is None else found.stored.is_simulated,
        )


def _check_providers(
    table: ModelCatalog,
    providers: Mapping[str, ModelProvider],
    embedding_providers: Mapping[str, EmbeddingProvider],
) -> None:
    for model in table.models:
        if model.provider not in (providers if model.kind == "text" else embedding_providers):
            raise ModelCatalogInvalid(f"{model.name} is {model.provider}'s, for whom there is no adapter.")
