"""Injected clocks, sleep and random numbers, and recent latencies of the models."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

SAMPLES_MIN = 20
SAMPLES_MAX = 100
SAMPLE_AGE_MAX_S = 600.0


def _utc_now() -> datetime:
    return datetime.now(UTC)


async def _sleep(duration_s: float) -> None:
    await asyncio.sleep(duration_s)


@dataclass(frozen=True, slots=True)
class TimeSource:
    """Replaced in tests."""

    now: Callable[[], datetime] = _utc_now
    monotonic_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = _sleep
    random: Callable[[], float] = random.random  # 0 to 1, for jitter


class Latencies:
    """Latencies per task and model: at most the latest 100 of the last ten minutes."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._samples: dict[tuple[str, str], deque[tuple[float, float]]] = {}

    def add(self, task: str, model: str, latency_s: float) -> None:
        samples = self._samples.setdefault((task, model), deque(maxlen=SAMPLES_MAX))
        samples.append((self._monotonic_s(), latency_s))

    def p95_s(self, task: str, model: str) -> float | None:
        """None with fewer than SAMPLES_MIN samples."""
        oldest_s = self._monotonic_s() - SAMPLE_AGE_MAX_S
        latencies = sorted(
            latency_s for at_s, latency_s in self._samples.get((task, model), ()) if at_s >= oldest_s
        )
        if len(latencies) < SAMPLES_MIN:
            return None
        return latencies[len(latencies) * 95 // 100]
