"""Routing of one request through its candidates until one answers or the deadline passes."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple

from infrastructure.ai.model_catalog import Task
from infrastructure.ai.routing.attempt import Attempt, AttemptResult, ProviderCall, R
from infrastructure.ai.routing.attempts import Attempts
from infrastructure.ai.routing.candidates import Candidate
from infrastructure.ai.routing.fallback_policy import (
    AttemptContext,
    FallbackLimits,
    FallbackPolicy,
    Repair,
    Step,
)
from infrastructure.ai.routing.recovery_probes import RecoveryProbes
from infrastructure.ai.routing.time_source import TimeSource
from infrastructure.ai.routing.usage import RequestUsage
from shared.cancellation import run_uncancelled
from shared.errors import DomainError
from shared.llm import ModelsUnavailable

ATTEMPT_SHARE = 0.6  # of the remaining time, while a further attempt is possible
PATIENCE_TIMES = 4.0  # times the p95: a slower attempt counts as hung
PATIENCE_MIN_S = 5.0
RETRY_AFTER_S = 5
RETRY_AFTER_MAX_S = 300

Prepare = Callable[[Candidate, Repair | None], ProviderCall[R]]


@dataclass(frozen=True, slots=True)
class RouterDependencies:
    """Dependencies shared by all requests."""

    attempts: Attempts
    probes: RecoveryProbes
    patience: FallbackLimits
    clocks: TimeSource
    is_hedged: bool = False


class Success(NamedTuple, Generic[R]):
    leg: Candidate
    reply: R


class CompletionRouter(Generic[R]):
    def __init__(
        self,
        means: RouterDependencies,
        task: Task,
        legs: tuple[Candidate, ...],
        prepare: Prepare[R],
        tally: RequestUsage,
    ) -> None:
        self._means = means
        self._task = task
        self._legs = legs
        self._prepare = prepare
        self._tally = tally
        self._course = FallbackPolicy(task.name, legs, means.patience)
        self._began_s = means.clocks.monotonic_s()
        self._waits_left_s = means.patience.waits_max_s
        self._told_s: float | None = None  # latest Retry-After of a provider

    async def run(self) -> Success[R]:
        step: Step | None = Step(0)
        while step is not None and self._tally.attempts < self._task.attempts_max:
            step = await self._begun(step)
            if step is None:
                break
            result = await (self._hedged(step) if self._may_hedge(step) else self._attempted(step))
            if isinstance(result, Success):
                return result
            step = result
        raise await self._failure()

    async def _begun(self, step: Step) -> Step | None:
        """The step at an available candidate. None when no candidate is available or the time is over."""
        await self._wait(step.wait_s)
        while self._time_left_s() >= self._means.patience.attempt_min_s:
            leg = self._open_leg(step.leg)
            if leg is not None:
                return step if leg == step.leg else Step(leg)
            pause_s = min((self._pause_s(leg) for leg in self._legs[step.leg :]), default=math.inf)
            if pause_s > self._wait_max_s():
                return None
            await self._wait(pause_s)
        return None

    def _open_leg(self, first: int) -> int | None:
        """A model that may have recovered is probed separately while the request goes to the next candidate,
        so that no request waits for a probe. Without a next candidate the request itself is the probe.
        """
        breakers = {
            number: breaker
            for number in range(first, len(self._legs))
            if (breaker := self._means.attempts.breaker(self._legs[number].model)).blocked_for_s == 0
        }
        closed = next((number for number, breaker in breakers.items() if breaker.state == "closed"), None)
        if closed is None:
            return next(iter(breakers), None)
        for number in breakers:
            if number < closed:
                self._means.probes.start(self._legs[number].model)
        return closed

    def _pause_s(self, leg: Candidate) -> float:
        """Remaining pause of a rate-limited model. Infinite for an open breaker: it is not awaited."""
        breaker = self._means.attempts.breaker(leg.model)
        return breaker.paused_for_s if breaker.state == "closed" else math.inf

    async def _wait(self, duration_s: float) -> None:
        if duration_s > 0:
            self._waits_left_s -= duration_s
            await self._means.clocks.sleep(duration_s)

    def _time_left_s(self) -> float:
        return self._began_s + self._task.deadline_s - self._means.clocks.monotonic_s()

    def _wait_max_s(self) -> float:
        return min(self._waits_left_s, self._time_left_s() - self._means.patience.attempt_min_s)

    def _other(self, step: Step) -> int | None:
        for number in range(step.leg + 1, len(self._legs)):
            if self._means.attempts.breaker(self._legs[number].model).blocked_for_s == 0:
                return number
        return None

    async def _attempted(self, step: Step) -> Success[R] | Step | None:
        attempt = self._attempt(step)
        return self._after(step, attempt, await self._means.attempts.make(attempt, self._tally))

    def _attempt(self, step: Step) -> Attempt[R]:
        leg = self._legs[step.leg]
        left_s = deadline_s = self._time_left_s()
        if self._other(step) is not None or self._tally.attempts == 0:
            left_s = deadline_s = left_s * ATTEMPT_SHARE
            p95_s = self._p95_s(leg)
            if p95_s is not None:
                deadline_s = min(deadline_s, max(PATIENCE_TIMES * p95_s, PATIENCE_MIN_S))
        ends_at_s = self._means.clocks.monotonic_s() + left_s
        return Attempt(leg.model, self._prepare(leg, step.repair), deadline_s, ends_at_s)

    def _p95_s(self, leg: Candidate) -> float | None:
        return self._means.attempts.latencies.p95_s(self._task.name, leg.model.name)

    def _may_hedge(self, step: Step) -> bool:
        return (
            self._means.is_hedged
            and self._tally.attempts == 0
            and self._task.attempts_max > 1
            and self._other(step) is not None
            and self._p95_s(self._legs[step.leg]) is not None
        )

    async def _hedged(self, step: Step) -> Success[R] | Step | None:
        """Starts the next candidate when the first exceeds its p95 latency. The first usable completion wins
        and the other call is cancelled.
        """
        make = self._means.attempts.make
        first, other = self._attempt(step), self._other(step)
        assert other is not None
        racing = {asyncio.ensure_future(make(first, self._tally)): (step, first)}
        result: Success[R] | Step | None = None
        try:
            await asyncio.wait(racing, timeout=self._p95_s(self._legs[step.leg]))
            if not any(task.done() for task in racing):
                second = self._attempt(Step(other))
                racing[asyncio.ensure_future(make(second, self._tally))] = (Step(other), second)
            while racing and not isinstance(result, Success):
                done, _ = await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    began, attempt = racing.pop(task)
                    result = self._after(began, attempt, task.result())
        finally:
            if racing:
                await run_uncancelled(_end(list(racing)))
        return result

    def _after(self, step: Step, attempt: Attempt[R], ended: AttemptResult[R]) -> Success[R] | Step | None:
        if ended.kind == "answered" and ended.reply is not None:
            return Success(self._legs[step.leg], ended.reply)
        self._told_s = ended.retry_after_s or self._told_s
        view = AttemptContext(
            complaint=attempt.trial.complaint,
            has_other=self._other(step) is not None,
            wait_max_s=self._wait_max_s(),
            chance=self._means.clocks.random(),
        )
        return self._course.after(step, ended, view)

    async def _failure(self) -> DomainError:
        if self._tally.is_empty:
            model = self._legs[0].model
            line = self._tally.line_without_attempt(model.provider, model.name, began_s=self._began_s)
            await line.write("skipped", is_simulated=self._means.attempts.is_simulated(model))
        if self._course.verdict is not None:
            return self._course.verdict
        blocked_s = min(self._means.attempts.breaker(leg.model).blocked_for_s for leg in self._legs)
        wait_s = blocked_s if 0 < blocked_s < math.inf else self._told_s or RETRY_AFTER_S
        return ModelsUnavailable(
            task=self._task.name, retry_after_s=math.ceil(min(max(wait_s, 1), RETRY_AFTER_MAX_S))
        )


async def _end(tasks: list[asyncio.Future[AttemptResult[R]]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
