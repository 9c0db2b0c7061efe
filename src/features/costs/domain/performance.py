"""Where a run's time goes."""

from collections.abc import Callable

import msgspec


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    times: int
    duration_ms: float
    share: float  # of the total; steps side by side or inside each other add up to more than 1
    is_open: bool  # it has not ended: its time is that until now


class PerformanceBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    steps: list[StepTime]  # in the order in which they first began
    total_ms: float  # from the first beginning to the last end, or until now while a step is open
    bottleneck: str | None  # the step that took longest


class PerformanceTracker:
    """Steps may be repeated, lie inside each other and run side by side, also under one name: their times
    are added up. The end of a step that has not begun is nothing; a step without an end goes on.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._now_s = monotonic_s
        self._began_at_s: float | None = None
        self._ended_at_s = 0.0
        self._open: dict[str, list[float]] = {}  # by name, when those that have not ended began
        self._spent_s: dict[str, float] = {}
        self._times: dict[str, int] = {}

    def start_step(self, name: str) -> None:
        now_s = self._now_s()
        if self._began_at_s is None:
            self._began_at_s = now_s
        self._open.setdefault(name, []).append(now_s)
        self._times[name] = self._times.get(name, 0) + 1

    def end_step(self, name: str) -> None:
        """Of several under one name, which of them ends makes no difference to the sum."""
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
