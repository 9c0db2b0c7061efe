"""Figures: the median of ratios, each of two consecutive measurements."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from place import Place

TASKS = 16


class Pair(NamedTuple):
    """One round. The machine's speed varies, so only consecutive measurements are compared."""

    subject: float
    floor: float

    @property
    def ratio(self) -> float:
        return self.subject / self.floor


Call = Callable[[], Awaitable[object]]
Round = Callable[[int], Awaitable[Pair]]
"""Measures subject and floor, each for this many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    title: str
    unit: str
    target: float | None  # None: informational
    set_up: Callable[[Place], AbstractAsyncContextManager[Round]]
    smaller_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    row: Row
    pairs: list[Pair]

    @property
    def ratio(self) -> float:
        return median(pair.ratio for pair in self.pairs)

    @property
    def medians(self) -> Pair:
        """Informational only: their ratio is not the median ratio."""
        subjects, floors = zip(*self.pairs, strict=True)
        return Pair(median(subjects), median(floors))

    @property
    def is_met(self) -> bool:
        target = self.row.target
        if target is None:
            return True
        return self.ratio <= target if self.row.smaller_is_better else self.ratio >= target


async def measure(
    row: Row, place: Place, *, rounds: int, seconds: int, tell: Callable[[str], None]
) -> Result:
    tell(f"{row.title}: setting up")
    async with row.set_up(place) as measure_round:
        tell(f"{row.title}: warming up")
        await measure_round(1)
        pairs: list[Pair] = []
        for number in range(1, rounds + 1):
            tell(f"{row.title}: round {number} of {rounds}")
            pairs.append(await measure_round(seconds))
    return Result(row, pairs)


async def calls_per_s(call: Call, seconds: float) -> float:
    """Returns the rate of 16 tasks together; each makes its next call when the last has returned."""
    calls_count = 0
    started_at = time.perf_counter()

    async def keep_calling() -> None:
        nonlocal calls_count
        while time.perf_counter() < started_at + seconds:
            await call()
            calls_count += 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(TASKS):
            tasks.create_task(keep_calling())
    return calls_count / (time.perf_counter() - started_at)
