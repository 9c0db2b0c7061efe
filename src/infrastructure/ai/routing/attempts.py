"""Execution of attempts: slot, circuit breaker, provider call, usage record."""

import asyncio
from collections.abc import Iterable

import structlog

from infrastructure.ai.model_catalog import Model
from infrastructure.ai.providers.base import ModelReply, ProviderError
from infrastructure.ai.routing.attempt import (
    ILL,
    MAY_CHARGE,
    NEEDS_AN_OPERATOR,
    OUTCOMES,
    Attempt,
    AttemptResult,
    R,
)
from infrastructure.ai.routing.fair_semaphore import FairSemaphore, Occupancy
from infrastructure.ai.routing.latencies import Latencies
from infrastructure.ai.routing.time_source import TimeSource
from infrastructure.ai.routing.usage import AttemptUsage, RequestUsage
from infrastructure.resilience.circuit_breaker import (
    BreakerPermit,
    BreakerRules,
    BreakerView,
    CircuitBreaker,
    Health,
)
from shared.llm import Usage

# Backstop for an adapter that ignores its deadline.
GRACE_S = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger("ai")


class Attempts:
    """Semaphores, circuit breakers and latencies, shared by all requests."""

    def __init__(
        self, models: Iterable[Model], *, slots_max: int, rules: BreakerRules | None, clocks: TimeSource
    ) -> None:
        self._models = tuple(models)
        self._limits = {model.provider: FairSemaphore(slots_max) for model in self._models}
        self._breakers = {model.name: CircuitBreaker(clocks.monotonic_s, rules) for model in self._models}
        self._simulated: dict[str, bool] = {}  # by provider, from its latest reply
        self._monotonic_s = clocks.monotonic_s
        self.latencies = Latencies(clocks.monotonic_s)

    def breaker(self, model: Model) -> CircuitBreaker:
        return self._breakers[model.name]

    def breakers(self) -> dict[str, BreakerView]:
        return {f"{model.provider}/{model.name}": self.breaker(model).view for model in self._models}

    def places(self) -> dict[str, Occupancy]:
        return {name: Occupancy(limit.free, limit.waiting) for name, limit in self._limits.items()}

    def is_simulated(self, model: Model) -> bool:
        return self._simulated.get(model.provider, False)

    async def make(self, attempt: Attempt[R], tally: RequestUsage) -> AttemptResult[R]:
        model = attempt.model
        if not await self._has_place(attempt, tally):
            return AttemptResult("queued")
        try:
            passage = self.breaker(model).enter()
            if passage is None:
                return AttemptResult("blocked")
            left_s = attempt.ends_at_s - self._monotonic_s()
            return await self.ask(attempt, tally, passage, deadline_s=min(attempt.deadline_s, left_s))
        finally:
            self._limits[model.provider].release()

    async def ask(
        self, attempt: Attempt[R], tally: RequestUsage, passage: BreakerPermit, *, deadline_s: float
    ) -> AttemptResult[R]:
        model = attempt.model
        line = tally.line(model.provider, model.name)
        is_hurried = deadline_s < attempt.deadline_s
        try:
            async with asyncio.timeout(deadline_s + GRACE_S):
                reply = await attempt.trial.ask(deadline_s)
        except ProviderError as trouble:
            return await self._fail(attempt, line, passage, trouble, is_hurried=is_hurried)
        except TimeoutError:
            trouble = ProviderError("timeout", was_sent=True, is_simulated=self.is_simulated(model))
            return await self._fail(attempt, line, passage, trouble, is_hurried=is_hurried)
        except BaseException as error:
            self._leave(model, passage, "unknown")
            await self._write_lost(attempt, line, error)
            raise
        return await self._succeed(attempt, line, passage, reply)

    async def _has_place(self, attempt: Attempt[R], tally: RequestUsage) -> bool:
        model = attempt.model
        began_s = self._monotonic_s()
        try:
            async with asyncio.timeout(attempt.ends_at_s - began_s):
                await self._limits[model.provider].acquire(tally.spender.account_id)
        except (TimeoutError, asyncio.CancelledError) as error:
            line = tally.line_without_attempt(model.provider, model.name, began_s=began_s)
            outcome = "timeout" if isinstance(error, TimeoutError) else "cancelled"
            await line.write(outcome, is_simulated=self.is_simulated(model), error="waited for a place")
            if isinstance(error, TimeoutError):
                return False
            raise
        return True

    async def _succeed(
        self, attempt: Attempt[R], line: AttemptUsage, passage: BreakerPermit, reply: R
    ) -> AttemptResult[R]:
        model = attempt.model
        self._simulated[model.provider] = reply.is_simulated
        self._leave(model, passage, "well")
        kind = attempt.trial.judge(reply)
        is_cached = isinstance(reply, ModelReply) and reply.is_from_gateway
        if kind == "answered" and not is_cached:
            self.latencies.add(line.tally.task, model.name, self._monotonic_s() - line.began_s)
        await line.write(
            OUTCOMES[kind],
            usage=None if is_cached else reply.usage,
            cache="gateway" if is_cached else "none",
            is_simulated=reply.is_simulated,
            gateway_log_id=reply.gateway_log_id if isinstance(reply, ModelReply) else None,
        )
        return AttemptResult(kind, reply)

    async def _fail(
        self,
        attempt: Attempt[R],
        line: AttemptUsage,
        passage: BreakerPermit,
        trouble: ProviderError,
        *,
        is_hurried: bool,
    ) -> AttemptResult[R]:
        model, kind = attempt.model, trouble.trouble
        self._simulated[model.provider] = trouble.is_simulated
        retry_after_s = _sane(trouble.retry_after_s)
        if kind == "rate_limited":
            self.breaker(model).pause(retry_after_s or 0.0)
            self._leave(model, passage, "unknown")
        elif kind == "timeout" and is_hurried:
            self._leave(model, passage, "unknown")  # a shortened deadline proves no outage
        else:
            self._leave(model, passage, "ill" if kind in ILL else "well")
        if kind in NEEDS_AN_OPERATOR:
            log.warning("operator_must_act", provider=model.provider, model=model.name, trouble=kind)
        is_charged = trouble.was_sent and kind in MAY_CHARGE
        await line.write(
            OUTCOMES[kind],
            usage=Usage(tokens_in=attempt.trial.tokens_estimated) if is_charged else None,
            is_estimated=is_charged,
            is_simulated=trouble.is_simulated,
            error=f"{kind} {trouble.detail}".strip(),
        )
        return AttemptResult(kind, retry_after_s=retry_after_s)

    async def _write_lost(self, attempt: Attempt[R], line: AttemptUsage, error: BaseException) -> None:
        """Record a cancelled attempt or an adapter's bug: in both cases the provider may have charged."""
        is_cancelled = isinstance(error, asyncio.CancelledError)
        await line.write(
            "cancelled" if is_cancelled else "unavailable",
            usage=Usage(tokens_in=attempt.trial.tokens_estimated),
            is_estimated=True,
            is_simulated=self.is_simulated(attempt.model),
            error=None if is_cancelled else type(error).__name__,
        )

    def _leave(self, model: Model, passage: BreakerPermit, health: Health) -> None:
        if self.breaker(model).leave(passage, health):
            log.warning("breaker_opened", provider=model.provider, model=model.name)


def _sane(retry_after_s: float | None) -> float | None:
    """None for a Retry-After value that is negative or not finite."""
    return retry_after_s if retry_after_s is not None and 0 <= retry_after_s < float("inf") else None
