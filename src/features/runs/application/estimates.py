import time
from collections.abc import Callable

from features.runs.application.ports import Measurements
from features.runs.domain.estimates import StepTimes, step_times
from shared.ttl_cache import TtlCache

TTL_S = 30.0
KINDS_MAX = 100


class Estimates:
    """Step durations per kind of run, measured over all accounts and cached for 30 seconds."""

    def __init__(self, measurements: Measurements, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._measurements = measurements
        self._cache: TtlCache[str, StepTimes] = TtlCache(KINDS_MAX, now_s=now_s)

    async def of(self, kind: str) -> StepTimes:
        times = self._cache.get(kind)
        if times is None:
            times = step_times(kind, await self._measurements.samples(kind))
            self._cache.set(kind, times, ttl_s=TTL_S)
        return times
