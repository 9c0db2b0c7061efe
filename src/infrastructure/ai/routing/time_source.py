"""Injected clocks, sleep and random numbers, replaced in tests."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)


async def _sleep(duration_s: float) -> None:
    await asyncio.sleep(duration_s)


@dataclass(frozen=True, slots=True)
class TimeSource:
    now: Callable[[], datetime] = _utc_now
    monotonic_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = _sleep
    random: Callable[[], float] = random.random  # 0 to 1, for jitter
