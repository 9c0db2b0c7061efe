"""Probes of models whose circuit breaker is open."""

import asyncio
from collections.abc import Mapping

import msgspec
import structlog

from infrastructure.ai.model_catalog import Model
from infrastructure.ai.providers.base import ModelProvider, ModelReply
from infrastructure.ai.routing.attempt import Attempt, AttemptResult
from infrastructure.ai.routing.attempts import Attempts
from infrastructure.ai.routing.candidates import Candidate
from infrastructure.ai.routing.usage import UsageRecorder
from infrastructure.ai.structured.request_builder import Prompt
from infrastructure.ai.structured.response_format import form_of
from infrastructure.resilience.circuit_breaker import BreakerPermit
from shared.llm import CostOwner, StructuredPrompt

TASK = "gateway.probe"
DEADLINE_S = 10.0
OUTPUT_TOKENS_MAX = 500

log: structlog.stdlib.BoundLogger = structlog.get_logger("ai")


class ProviderAvailability(msgspec.Struct, frozen=True):
    is_there: bool


QUESTION = StructuredPrompt(
    task=TASK,
    stable=("You are asked whether you are there.",),
    question="Answer that you are.",
    answer=ProviderAvailability,
    spender=CostOwner(),
    is_fresh=True,  # a cached reply proves nothing
)


class RecoveryProbes:
    """Probes run outside the requests and at our own cost: no completion waits for a probe, and no tenant
    pays for one.
    """

    def __init__(
        self, providers: Mapping[str, ModelProvider], attempts: Attempts, books: UsageRecorder
    ) -> None:
        self._providers = providers
        self._attempts = attempts
        self._books = books
        self._under_way: set[asyncio.Task[None]] = set()

    def start(self, model: Model) -> None:
        passage = self._attempts.breaker(model).enter()
        if passage is not None:
            task = asyncio.create_task(self._run(model, passage))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def check(self, model: Model) -> AttemptResult[ModelReply]:
        """Probe the model now. The result is "blocked" when the circuit breaker does not permit a call."""
        passage = self._attempts.breaker(model).enter()
        return AttemptResult("blocked") if passage is None else await self._ask(model, passage)

    async def _run(self, model: Model, passage: BreakerPermit) -> None:
        try:
            await self._ask(model, passage)
        except Exception as error:  # noqa: BLE001  no caller awaits the background task
            log.warning("probe_failed", model=model.name, cause=type(error).__name__)

    async def _ask(self, model: Model, passage: BreakerPermit) -> AttemptResult[ModelReply]:
        leg = Candidate(
            model=model,
            effort=model.efforts[0] if model.efforts else None,
            temperature=None,
            output_tokens_max=min(OUTPUT_TOKENS_MAX, model.output_tokens_max),
        )
        trial = Prompt(QUESTION, form_of(ProviderAvailability)).trial(
            self._providers[model.provider], leg, None
        )
        tally = self._books.open(QUESTION.spender, TASK)
        ends_at_s = self._books.clocks.monotonic_s() + DEADLINE_S
        attempt = Attempt(model, trial, DEADLINE_S, ends_at_s)
        return await self._attempts.ask(attempt, tally, passage, deadline_s=DEADLINE_S)
