"""Time spent per step of a run."""

from collections.abc import Callable

import msgspec


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    times: int
    duration_ms: float
    share: float  # of the total; parallel or nested steps add up to more than 1
    is_open: bool  # the step has not ended; its time is measured until now


class PerformanceBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    steps: list[StepTime]  # ordered by their first start
    total_ms: float  # from the first start to the last end, or until now while a step is open
    bottleneck: str | None  # the step with the longest duration


class PerformanceTracker:
    """Accumulates the time of each step. Steps may repeat, nest and run in parallel, also under one name. The
    end of a step that has not started is ignored; a step without an end stays open.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._now_s = monotonic_s
        self._began_at_s: float | None = None
        self._ended_at_s = 0.0
        self._open: dict[str, list[float]] = {}  # start times of the open steps, by name
        self._spent_s: dict[str, float] = {}
        self._times: dict[str, int] = {}

    def start_step(self, name: str) -> None:
        now_s = self._now_s()
        if self._began_at_s is None:
            self._began_at_s = now_s
        self._open.setdefault(name, []).append(now_s)
        self._times[name] = self._times.get(name, 0) + 1

    def end_step(self, name: str) -> None:
        """Closes the latest open step of this name; the choice does not affect the sum."""
        if not self._open.get(name):
            return
        self._ended_at_s = self._now_s()
        began_at_s = self._open[name].pop()
        self._spent_s[name] = self._spent_s.get(name, 0.0) + self._ended_at_s - began_at_s

    def get_breakdown(self) -> PerformanceBreakdown:
        if self._began_at_s is None:
            return PerformanceBreakdown(steps=[], total_ms=0.0, bottleneck=None)
        now_s = self._now_s()
        ended_at_s = now_s if any(self._open.values()) else self._ended_at_s
        total_ms = (ended_at_s - self._began_at_s) * 1_000
        steps = [self._step(name, now_s, total_ms) for name in self._times]
        longest = max(steps, key=lambda step: step.duration_ms)
        return PerformanceBreakdown(steps=steps, total_ms=total_ms, bottleneck=longest.name)

    def _step(self, name: str, now_s: float, total_ms: float) -> StepTime:
        going_on = self._open[name]
        spent_s = self._spent_s.get(name, 0.0) + sum(now_s - began_at_s for began_at_s in going_on)
        return StepTime(
            name=name,
            times=self._times[name],
            duration_ms=spent_s * 1_000,
            share=spent_s * 1_000 / total_ms if total_ms else 0.0,
            is_open=bool(going_on),
        )
