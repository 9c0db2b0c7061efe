"""Attempts at a model: slot, circuit breaker, provider call, usage row."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import structlog

from features.costs.domain.provider_calls import CallOutcome
from infrastructure.ai.model_catalog import Model
from infrastructure.ai.providers.base import ErrorKind, ModelReply, ProviderError
from infrastructure.ai.routing.timing import Latencies, TimeSource
from infrastructure.monitoring.cost_tracker import CostTracker, RequestUsage, UsageRow
from infrastructure.resilience.circuit_breaker import (
    BreakerPermit,
    BreakerRules,
    BreakerView,
    CallResult,
    CircuitBreaker,
)
from shared.llm import Usage

# Backstop for an adapter that ignores its deadline.
GRACE_S = 1.0

ReplyKind = Literal["answered", "malformed", "truncated", "refused"]
ResultKind = (
    ReplyKind
    | ErrorKind
    | Literal[
        "queued",  # no slot became free in time
        "blocked",  # the circuit breaker opened before the call; no attempt was made
    ]
)

OUTCOMES: dict[ResultKind, CallOutcome] = {
    "answered": "answered",
    "malformed": "malformed",
    "truncated": "malformed",
    "refused": "refused",
    "timeout": "timeout",
    "rate_limited": "rate_limited",
    "invalid": "invalid",
    "connection": "unavailable",
    "unavailable": "unavailable",
    "malformed_response": "unavailable",
    "unauthorised": "unavailable",
    "unknown_model": "unavailable",
}
BREAKER_FAILURES: frozenset[ResultKind] = frozenset(
    {"timeout", "connection", "unavailable", "malformed_response"}
)
# After these failures the provider may have charged for an unknown number of tokens.
MAY_CHARGE: frozenset[ResultKind] = frozenset({"timeout", "connection", "malformed_response"})
NEEDS_AN_OPERATOR: frozenset[ResultKind] = frozenset({"unauthorised", "unknown_model"})

log: structlog.stdlib.BoundLogger = structlog.get_logger("ai")


class Validation(NamedTuple):
    kind: ReplyKind
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One prepared call to a provider and the validation of its reply."""

    model: Model
    tokens_estimated: int  # input tokens, used when the provider reports no usage
    send: Callable[[float], Awaitable[ModelReply]]  # with the deadline in seconds
    validate: Callable[[ModelReply], Validation]


@dataclass(frozen=True, slots=True)
class AttemptResult:
    kind: ResultKind
    reply: ModelReply | None = None
    validation_error: str | None = None
    retry_after_s: float | None = None


class Attempts:
    """Slots, circuit breakers and latencies, shared by all requests."""

    def __init__(
        self,
        models: Iterable[Model],
        costs: CostTracker,
        *,
        slots_max: int,
        rules: BreakerRules | None,
        clocks: TimeSource,
    ) -> None:
        self._models = tuple(models)
        self._costs = costs
        self._slots = {model.provider: asyncio.Semaphore(slots_max) for model in self._models}
        self._breakers = {model.name: CircuitBreaker(clocks.monotonic_s, rules) for model in self._models}
        self._simulated: dict[str, bool] = {}  # by provider, from its latest reply
        self._monotonic_s = clocks.monotonic_s
        self.latencies = Latencies(clocks.monotonic_s)

    def breaker(self, model: Model) -> CircuitBreaker:
        return self._breakers[model.name]

    def breakers(self) -> dict[str, BreakerView]:
        return {f"{model.provider}/{model.name}": self.breaker(model).view for model in self._models}

    def is_simulated(self, model: Model) -> bool:
        return self._simulated.get(model.provider, False)

    async def make(
        self, attempt: Attempt, request: RequestUsage, *, deadline_s: float, ends_at_s: float
    ) -> AttemptResult:
        """``deadline_s`` is the provider's time from the start of the call. ``ends_at_s`` is the end of the
        attempt including the wait for a slot.
        """
        model = attempt.model
        if not await self._acquire_slot(model, request, ends_at_s):
            return AttemptResult("queued")
        try:
            permit = self.breaker(model).enter()
            if permit is None:
                return AttemptResult("blocked")
            left_s = ends_at_s - self._monotonic_s()
            return await self.call(
                attempt, request, permit, deadline_s=min(deadline_s, left_s), is_shortened=left_s < deadline_s
            )
        finally:
            self._slots[model.provider].release()

    async def call(
        self,
        attempt: Attempt,
        request: RequestUsage,
        permit: BreakerPermit,
        *,
        deadline_s: float,
        is_shortened: bool = False,
    ) -> AttemptResult:
        model = attempt.model
        row = self._costs.start_ai_call(request, model.provider, model.name)
        try:
            async with asyncio.timeout(deadline_s + GRACE_S):
                reply = await attempt.send(deadline_s)
        except ProviderError as error:
            return await self._fail(attempt, row, permit, error, is_shortened=is_shortened)
        except TimeoutError:
            error = ProviderError("timeout", was_sent=True, is_simulated=self.is_simulated(model))
            return await self._fail(attempt, row, permit, error, is_shortened=is_shortened)
        except BaseException as error:
            self._leave(model, permit, "unknown")
            await self._abandon(attempt, row, error)
            raise
        return await self._succeed(attempt, row, permit, reply)

    async def _acquire_slot(self, model: Model, request: RequestUsage, ends_at_s: float) -> bool:
        """Returns False when no slot became free in time."""
        row = self._costs.start_ai_call(request, model.provider, model.name, is_attempt=False)
        try:
            async with asyncio.timeout(ends_at_s - row.began_s):
                await self._slots[model.provider].acquire()
        except (TimeoutError, asyncio.CancelledError) as error:
            outcome = "timeout" if isinstance(error, TimeoutError) else "cancelled"
            await self._costs.track_ai_call(
                row, outcome, is_simulated=self.is_simulated(model), error="waited for a slot"
            )
            if isinstance(error, TimeoutError):
                return False
            raise
        return True

    async def _succeed(
        self, attempt: Attempt, row: UsageRow, permit: BreakerPermit, reply: ModelReply
    ) -> AttemptResult:
        model = attempt.model
        self._simulated[model.provider] = reply.is_simulated
        self._leave(model, permit, "success")
        kind, validation_error = attempt.validate(reply)
        if kind == "answered" and not reply.is_from_gateway:
            self.latencies.add(row.request.task, model.name, self._monotonic_s() - row.began_s)
        await self._costs.track_ai_call(
            row,
            OUTCOMES[kind],
            usage=None if reply.is_from_gateway else reply.usage,
            cache="gateway" if reply.is_from_gateway else "none",
            is_simulated=reply.is_simulated,
            gateway_log_id=reply.gateway_log_id,
        )
        return AttemptResult(kind, reply, validation_error)

    async def _fail(
        self,
        attempt: Attempt,
        row: UsageRow,
        permit: BreakerPermit,
        error: ProviderError,
        *,
        is_shortened: bool,
    ) -> AttemptResult:
        model, kind = attempt.model, error.kind
        self._simulated[model.provider] = error.is_simulated
        retry_after_s = _finite(error.retry_after_s)
        if kind == "rate_limited":
            self.breaker(model).pause(retry_after_s or 0.0)
        self._leave(model, permit, _breaker_result(kind, is_shortened=is_shortened))
        if kind in NEEDS_AN_OPERATOR:
            log.warning("provider_rejected_us", provider=model.provider, model=model.name, error=kind)
        is_charged = error.was_sent and kind in MAY_CHARGE
        await self._costs.track_ai_call(
            row,
            OUTCOMES[kind],
            usage=Usage(tokens_in=attempt.tokens_estimated) if is_charged else None,
            is_estimated=is_charged,
            is_simulated=error.is_simulated,
            error=f"{kind} {error.detail}".strip(),
        )
        return AttemptResult(kind, retry_after_s=retry_after_s)

    async def _abandon(self, attempt: Attempt, row: UsageRow, error: BaseException) -> None:
        """Record a cancelled attempt or an adapter's bug: in both cases the provider may have charged."""
        is_cancelled = isinstance(error, asyncio.CancelledError)
        await self._costs.track_ai_call(
            row,
            "cancelled" if is_cancelled else "unavailable",
            usage=Usage(tokens_in=attempt.tokens_estimated),
            is_estimated=True,
            is_simulated=self.is_simulated(attempt.model),
            error=None if is_cancelled else type(error).__name__,
        )

    def _leave(self, model: Model, permit: BreakerPermit, result: CallResult) -> None:
        if self.breaker(model).leave(permit, result):
            log.warning("breaker_opened", provider=model.provider, model=model.name)


def _breaker_result(kind: ErrorKind, *, is_shortened: bool) -> CallResult:
    # A rate limit, or a timeout after a shortened deadline, proves no outage.
    if kind == "rate_limited" or (kind == "timeout" and is_shortened):
        return "unknown"
    return "failure" if kind in BREAKER_FAILURES else "success"


def _finite(retry_after_s: float | None) -> float | None:
    """None for a Retry-After value that is negative or not finite."""
    return retry_after_s if retry_after_s is not None and 0 <= retry_after_s < float("inf") else None
