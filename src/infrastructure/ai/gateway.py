"""The one way to a model: remembered answers first, then whoever answers, and every call written down."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from features.analysis.application.ports import Analyst
from features.costs.application.ports import CallLog
from features.costs.domain.calls import CallOutcome
from infrastructure.ai.answers import AnswerCache, Memory, StoredAnswer
from infrastructure.ai.attempts import Attempts
from infrastructure.ai.books import Books, Prices
from infrastructure.ai.clocks import Clocks
from infrastructure.ai.course import Patience
from infrastructure.ai.embeddings import Embedder
from infrastructure.ai.forms import AnswerForm, Malformed, form_of
from infrastructure.ai.inquiry import Inquiry, Means
from infrastructure.ai.keys import answer_key
from infrastructure.ai.limits import Places
from infrastructure.ai.model_table import Model, ModelTable, ModelTableInvalid, Retirement, Task
from infrastructure.ai.probes import Probes
from infrastructure.ai.prompt import Prompt
from infrastructure.ai.provider import EmbeddingProvider, ModelProvider
from infrastructure.ai.route import Leg, legs_of
from infrastructure.breaker import BreakerRules, BreakerView
from shared.errors import DomainError
from shared.flights import FlightCancelled, Flights
from shared.questions import (
    Answer,
    AnswerMalformed,
    AnswerRefused,
    Cache,
    EmbeddedTexts,
    ModelsUnavailable,
    Question,
    QuestionInvalid,
    Spender,
    Usage,
)

T = TypeVar("T")

SLOTS_MAX = 64  # calls at a time, a provider

OUTCOMES: dict[type[DomainError], CallOutcome] = {
    AnswerMalformed: "malformed",
    AnswerRefused: "refused",
    QuestionInvalid: "invalid",
}


class _Asked(NamedTuple):
    question: Question[Any]
    task: Task
    legs: tuple[Leg, ...]
    form: AnswerForm[Any]
    answer_key: bytes
    began_s: float


class _Found(NamedTuple):
    stored: StoredAnswer
    cache: Cache
    usage: Usage
    cost_nanodollars: int | None


class Gateway(Analyst):
    def __init__(
        self,
        *,
        table: ModelTable,
        providers: Mapping[str, ModelProvider],
        embedding_providers: Mapping[str, EmbeddingProvider],
        calls: CallLog,
        prices: Prices,
        answers: AnswerCache | None = None,
        takes_simulated: bool = True,
        slots_max: int = SLOTS_MAX,
        breaker_rules: BreakerRules | None = None,
        patience: Patience | None = None,
        is_hedged: bool = False,
        clocks: Clocks | None = None,
    ) -> None:
        _check_providers(table, providers, embedding_providers)
        self._table = table
        self._providers = providers
        self._clocks = clocks or Clocks()
        self._books = Books(calls, prices, self._clocks)
        self._attempts = Attempts(table.models, slots_max=slots_max, rules=breaker_rules, clocks=self._clocks)
        self._probes = Probes(providers, self._attempts, self._books)
        self._means = Means(
            self._attempts, self._probes, patience or Patience(), self._clocks, is_hedged=is_hedged
        )
        self._memory = Memory(answers, takes_simulated=takes_simulated)
        self._flights: Flights[_Found] = Flights()
        self._embedder = Embedder(table, embedding_providers, self._means, self._books)

    async def answer(self, question: Question[T]) -> Answer[T]:
        asked = self._asked(question)
        found = None if question.is_fresh else await self._remembered(asked)
        if found is None:
            found = await self._shared(asked)
        return Answer(
            value=asked.form.decode(found.stored.text),
            provider=found.stored.provider,
            model=found.stored.model,
            is_simulated=found.stored.is_simulated,
            cache=found.cache,
            usage=found.usage,
            cost_nanodollars=found.cost_nanodollars,
            latency_ms=(self._clocks.monotonic_s() - asked.began_s) * 1_000,
        )

    async def embed(self, texts: Sequence[str], spender: Spender) -> EmbeddedTexts:
        return await self._embedder.embed(texts, spender)

    async def prepare(self) -> None:
        """Have the providers' clients ready before the first question. Never fails."""
        await asyncio.gather(*(provider.prepare() for provider in self._providers.values()))

    def breakers(self) -> dict[str, BreakerView]:
        """By provider and model, for the health page."""
        return self._attempts.breakers()

    def places(self) -> dict[str, Places]:
        """By provider: how many calls could begin now, and how many wait."""
        return self._attempts.places()

    @property
    def questions_under_way(self) -> int:
        return len(self._flights)

    async def check(self) -> AsyncGenerator[tuple[Model, str]]:
        """Ask every text model that a task uses today a few words; "answered", or why not."""
        today = self._clocks.now().date()
        routes = (self._table.route(self._table.task(task), today) for task in self._table.tasks)
        for model in dict.fromkeys(model for route in routes for model in route):
            if model.kind == "text":
                yield model, (await self._probes.check(model)).kind

    def retirements(self) -> list[Retirement]:
        """Models that retire soon, for the health page."""
        return self._table.warnings(self._clocks.now().date())

    async def close(self) -> None:
        """Ends what is under way, writes it down, and closes the providers."""
        await self._flights.close()
        await self._probes.close()
        for provider in self._providers.values():
            await provider.close()

    def _asked(self, question: Question[Any]) -> _Asked:
        task = self._table.task(question.task)
        legs = legs_of(self._table, task, self._clocks.now().date())
        form = form_of(question.answer)
        key = answer_key(question, legs[0], form.schema_bytes)
        return _Asked(question, task, legs, form, key, self._clocks.monotonic_s())

    async def _remembered(self, asked: _Asked) -> _Found | None:
        stored = await self._memory.find(asked.question.spender.account_id, asked.answer_key)
        if stored is None:
            return None
        try:
            asked.form.decode(stored.text)
        except Malformed:
            return None
        found = _Found(stored, "exact", Usage(), 0)
        await self._write(asked, "answered", found)
        return found

    async def _shared(self, asked: _Asked) -> _Found:
        key = asked.answer_key + (b"fresh" if asked.question.is_fresh else b"")
        is_first = key not in self._flights
        try:
            found = await self._flights.join(key, partial(self._inquire, asked))
        except FlightCancelled:
            raise ModelsUnavailable(asked.task.name, 1) from None
        except asyncio.CancelledError:
            if not is_first:
                await self._write(asked, "cancelled")
            raise
        except DomainError as error:
            if is_first:
                raise
            await self._write(asked, OUTCOMES.get(type(error), "unavailable"))
            raise type(error)(*error.args) from None  # each its own: tracebacks do not mix
        if is_first:
            return found
        found = found._replace(cache="shared", usage=Usage(), cost_nanodollars=0)
        await self._write(asked, "answered", found)
        return found

    async def _inquire(self, asked: _Asked) -> _Found:
        question = asked.question
        tally = self._books.open(question.spender, question.task)
        prompt = Prompt(question, asked.form)
        inquiry = Inquiry(
            self._means,
            asked.task,
            asked.legs,
            lambda leg, repair: prompt.trial(self._providers[leg.model.provider], leg, repair),
            tally,
        )
        leg, reply = await inquiry.run()
        stored = StoredAnswer(
            text=reply.text,
            provider=leg.model.provider,
            model=leg.model.name,
            is_simulated=reply.is_simulated,
        )
        await self._memory.keep(question.spender.account_id, asked.answer_key, stored)
        if reply.is_from_gateway:
            return _Found(stored, "gateway", Usage(), tally.cost_nanodollars)
        return _Found(stored, "none", reply.usage, tally.cost_nanodollars)

    async def _write(self, asked: _Asked, outcome: CallOutcome, found: _Found | None = None) -> None:
        """The row of an answer, or of a failure, that took no attempt of its own."""
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
    table: ModelTable,
    providers: Mapping[str, ModelProvider],
    embedding_providers: Mapping[str, EmbeddingProvider],
) -> None:
    for model in table.models:
        if model.provider not in (providers if model.kind == "text" else embedding_providers):
            raise ModelTableInvalid(f"{model.name} is {model.provider}'s, for whom there is no adapter.")
