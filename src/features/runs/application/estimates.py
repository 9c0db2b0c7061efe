import time
from collections.abc import Callable, Mapping

from features.runs.application.ports import Measurements
from features.runs.domain.estimates import StepTimes, step_times
from features.runs.domain.kinds import EXPECTED_S, RunKind
from shared.ttl_cache import TtlCache

TTL_S = 30.0
KINDS_MAX = 100


class Estimates:
    """Step durations per kind of run, measured over all accounts and cached for 30 seconds."""

    def __init__(
        self,
        measurements: Measurements,
        kinds: Mapping[str, RunKind] | None = None,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._measurements = measurements
        self._kinds = kinds or {}
        self._cache: TtlCache[str, StepTimes] = TtlCache(KINDS_MAX, now_s=now_s)

    async def of(self, kind: str) -> StepTimes:
        times = self._cache.get(kind)
        if times is None:
            expected_s = self._kinds[kind].expected_s if kind in self._kinds else EXPECTED_S
            times = step_times(await self._measurements.samples(kind), expected_s)
            self._cache.set(kind, times, ttl_s=TTL_S)
        return times
