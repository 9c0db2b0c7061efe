import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from features.runs.application.ports import Measurements
from features.runs.domain.estimates import StepTimes, step_times
from features.runs.domain.kinds import EXPECTED_S, RunKind

REMEMBERED_FOR_S = 30.0
KINDS_MAX = 100


@dataclass(frozen=True, slots=True)
class Estimates:
    """Step durations per kind of run, measured over all accounts and cached for 30 seconds."""

    measurements: Measurements
    kinds: Mapping[str, RunKind] = field(default_factory=dict[str, RunKind])
    now_s: Callable[[], float] = time.monotonic
    _known: dict[str, tuple[StepTimes, float]] = field(default_factory=dict, init=False)

    async def of(self, kind: str) -> StepTimes:
        known = self._known.get(kind)
        if known is not None and self.now_s() < known[1]:
            return known[0]
        expected_s = self.kinds[kind].expected_s if kind in self.kinds else EXPECTED_S
        times = step_times(await self.measurements.samples(kind), expected_s)
        if len(self._known) >= KINDS_MAX:
            self._known.clear()
        self._known[kind] = (times, self.now_s() + REMEMBERED_FOR_S)
        return times
