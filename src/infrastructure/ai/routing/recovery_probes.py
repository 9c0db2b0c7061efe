"""Probes of models whose circuit breaker is open."""

import asyncio
from collections.abc import Mapping

import msgspec
import structlog

from infrastructure.ai.model_catalog import Candidate, Model
from infrastructure.ai.providers.base import ModelProvider
from infrastructure.ai.request_builder import RequestBuilder
from infrastructure.ai.routing.attempts import AttemptResult, Attempts
from infrastructure.monitoring.cost_tracker import RequestUsage
from infrastructure.resilience.circuit_breaker import BreakerPermit
from shared.llm import CostOwner, StructuredPrompt

TASK = "gateway.probe"
DEADLINE_S = 10.0
OUTPUT_TOKENS_MAX = 500

log: structlog.stdlib.BoundLogger = structlog.get_logger("ai")


class ProviderAvailability(msgspec.Struct, frozen=True):
    is_available: bool


PROBE = StructuredPrompt(
    task=TASK,
    cached_prefix=("You confirm that you are available.",),
    user_message="Confirm that you are available.",
    output_type=ProviderAvailability,
    cost_owner=CostOwner(),
    is_fresh=True,  # a cached reply proves nothing
)


class RecoveryProbes:
    """Probes run outside the requests and at our own cost: no completion waits for a probe, and no tenant
    pays for one.
    """

    def __init__(self, providers: Mapping[str, ModelProvider], attempts: Attempts) -> None:
        self._builder = RequestBuilder(PROBE, providers)
        self._attempts = attempts
        self._running: set[asyncio.Task[None]] = set()

    def start(self, model: Model) -> None:
        permit = self._attempts.breaker(model).enter()
        if permit is not None:
            task = asyncio.create_task(self._run(model, permit))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def check(self, model: Model) -> AttemptResult:
        """Probe the model now. The result is "blocked" when the circuit breaker does not permit a call."""
        permit = self._attempts.breaker(model).enter()
        return AttemptResult("blocked") if permit is None else await self._call(model, permit)

    async def _run(self, model: Model, permit: BreakerPermit) -> None:
        try:
            await self._call(model, permit)
        except Exception as error:  # noqa: BLE001  no caller awaits the background task
            log.warning("probe_failed", model=model.name, cause=type(error).__name__)

    async def _call(self, model: Model, permit: BreakerPermit) -> AttemptResult:
        candidate = Candidate(
            model=model,
            effort=model.efforts[0] if model.efforts else None,
            temperature=None,
            output_tokens_max=min(OUTPUT_TOKENS_MAX, model.output_tokens_max),
        )
        usage = RequestUsage(PROBE.cost_owner, TASK)
        return await self._attempts.call(
            self._builder.attempt(candidate), usage, permit, deadline_s=DEADLINE_S
        )
