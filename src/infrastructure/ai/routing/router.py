"""Routing of one request through its candidates until one answers or the deadline passes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from infrastructure.ai.model_catalog import Candidate, Task
from infrastructure.ai.providers.base import ModelReply
from infrastructure.ai.routing.attempts import Attempt, Attempts
from infrastructure.ai.routing.fallback_policy import FallbackLimits, FallbackPolicy, Repair, Step
from infrastructure.ai.routing.recovery_probes import RecoveryProbes
from infrastructure.ai.routing.timing import TimeSource
from infrastructure.monitoring.cost_tracker import CostTracker, RequestUsage
from shared.errors import DomainError
from shared.llm import ModelsUnavailable

ATTEMPT_SHARE = 0.6  # of the remaining time, while a further attempt is possible
HUNG_TIMES = 4.0  # times the p95: a slower attempt counts as hung
HUNG_MIN_S = 5.0
RETRY_AFTER_S = 5
RETRY_AFTER_MAX_S = 300

Prepare = Callable[[Candidate, Repair | None], Attempt]


@dataclass(frozen=True, slots=True)
class RouterDependencies:
    """Dependencies shared by all requests."""

    attempts: Attempts
    probes: RecoveryProbes
    costs: CostTracker
    limits: FallbackLimits
    clocks: TimeSource


class Success(NamedTuple):
    candidate: Candidate
    reply: ModelReply


class Router:
    def __init__(
        self,
        shared: RouterDependencies,
        task: Task,
        candidates: tuple[Candidate, ...],
        prepare: Prepare,
        usage: RequestUsage,
    ) -> None:
        self._shared = shared
        self._task = task
        self._candidates = candidates
        self._prepare = prepare
        self._usage = usage
        self._policy = FallbackPolicy(task.name, candidates, shared.limits)
        self._began_s = shared.clocks.monotonic_s()
        self._waits_left_s = shared.limits.waits_max_s
        self._retry_after_s: float | None = None  # latest of a provider

    async def run(self) -> Success:
        step: Step | None = Step(0)
        while step is not None and self._usage.attempts < self._task.attempts_max:
            step = await self._wait_for_candidate(step)
            if step is None:
                break
            result = await self._attempt(step)
            if isinstance(result, Success):
                return result
            step = result
        raise await self._failure()

    async def _wait_for_candidate(self, step: Step) -> Step | None:
        """The step at an available candidate. None when no candidate is available or the time is over."""
        await self._wait(step.wait_s)
        while self._time_left_s() >= self._shared.limits.attempt_min_s:
            candidate = self._available_candidate(step.candidate)
            if candidate is not None:
                return step if candidate == step.candidate else Step(candidate)
            pause_s = min(map(self._pause_s, self._candidates[step.candidate :]), default=math.inf)
            if pause_s > self._wait_max_s():
                return None
            await self._wait(pause_s)
        return None

    def _available_candidate(self, first: int) -> int | None:
        """A model that may have recovered is probed separately while the request goes to the next candidate,
        so that no request waits for a probe. Without a next candidate the request itself is the probe.
        """
        breakers = {
            number: breaker
            for number in range(first, len(self._candidates))
            if (breaker := self._shared.attempts.breaker(self._candidates[number].model)).blocked_for_s == 0
        }
        closed = next((number for number, breaker in breakers.items() if breaker.state == "closed"), None)
        if closed is None:
            return next(iter(breakers), None)
        for number in breakers:
            if number < closed:
                self._shared.probes.start(self._candidates[number].model)
        return closed

    def _pause_s(self, candidate: Candidate) -> float:
        """Remaining pause of a rate-limited model. Infinite for an open breaker: it is not awaited."""
        breaker = self._shared.attempts.breaker(candidate.model)
        return breaker.paused_for_s if breaker.state == "closed" else math.inf

    async def _wait(self, duration_s: float) -> None:
        if duration_s > 0:
            self._waits_left_s -= duration_s
            await self._shared.clocks.sleep(duration_s)

    def _time_left_s(self) -> float:
        return self._began_s + self._task.deadline_s - self._shared.clocks.monotonic_s()

    def _wait_max_s(self) -> float:
        return min(self._waits_left_s, self._time_left_s() - self._shared.limits.attempt_min_s)

    def _has_fallback(self, step: Step) -> bool:
        later = self._candidates[step.candidate + 1 :]
        return any(self._shared.attempts.breaker(other.model).blocked_for_s == 0 for other in later)

    async def _attempt(self, step: Step) -> Success | Step | None:
        candidate = self._candidates[step.candidate]
        deadline_s, ends_at_s = self._attempt_times_s(step)
        attempt = self._prepare(candidate, step.repair)
        result = await self._shared.attempts.make(
            attempt, self._usage, deadline_s=deadline_s, ends_at_s=ends_at_s
        )
        if result.kind == "answered" and result.reply is not None:
            return Success(candidate, result.reply)
        self._retry_after_s = result.retry_after_s or self._retry_after_s
        return self._policy.next_step(
            step,
            result,
            has_fallback=self._has_fallback(step),
            wait_max_s=self._wait_max_s(),
            random=self._shared.clocks.random(),
        )

    def _attempt_times_s(self, step: Step) -> tuple[float, float]:
        """The provider's time, and the end of the attempt by the monotonic clock."""
        left_s = deadline_s = self._time_left_s()
        if self._has_fallback(step) or self._usage.attempts == 0:
            left_s = deadline_s = left_s * ATTEMPT_SHARE
            model = self._candidates[step.candidate].model.name
            p95_s = self._shared.attempts.latencies.p95_s(self._task.name, model)
            if p95_s is not None:
                deadline_s = min(deadline_s, max(HUNG_TIMES * p95_s, HUNG_MIN_S))
        return deadline_s, self._shared.clocks.monotonic_s() + left_s

    async def _failure(self) -> DomainError:
        attempts, costs = self._shared.attempts, self._shared.costs
        if not self._usage.rows:
            model = self._candidates[0].model
            row = costs.start_ai_call(self._usage, model.provider, model.name, is_attempt=False)
            await costs.track_ai_call(row, "skipped", is_simulated=attempts.is_simulated(model))
        if self._policy.error is not None:
            return self._policy.error
        blocked_s = min(attempts.breaker(candidate.model).blocked_for_s for candidate in self._candidates)
        wait_s = blocked_s if 0 < blocked_s < math.inf else self._retry_after_s or RETRY_AFTER_S
        retry_after_s = math.ceil(min(max(wait_s, 1), RETRY_AFTER_MAX_S))
        return ModelsUnavailable(task=self._task.name, retry_after_s=retry_after_s)
