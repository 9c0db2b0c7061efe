from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import msgspec

from features.costs.application.ports import CostFigures, Step
from features.costs.domain.errors import WindowInvalid
from features.costs.domain.reports import (
    AccountSpending,
    CacheRate,
    CostLine,
    Latency,
    Refusal,
    SuccessRate,
    Window,
)
from shared.clock import Clock

T = TypeVar("T")
U = TypeVar("U")

DAYS_DEFAULT = 30
DAYS_MAX = 90  # retention of the figures
DAYS_BY_THE_HOUR_MAX = 31
LINES_MAX = 1_000


class Report(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    window: Window
    lines: list[T]
    is_complete: bool  # False if lines beyond LINES_MAX were left out

    def map(self, convert: Callable[[T], U]) -> "Report[U]":
        lines = [convert(line) for line in self.lines]
        return Report(window=self.window, lines=lines, is_complete=self.is_complete)


class AccountSpendingReport(Report[AccountSpending], frozen=True, kw_only=True):
    cost_nanodollars: int  # of all accounts, including those left out


@dataclass(frozen=True, slots=True)
class CostReports:
    """Reports over a window of time; the default is the last 30 days."""

    figures: CostFigures
    now: Clock

    async def spenders(
        self, since: datetime | None, until: datetime | None, *, share_percent: int
    ) -> AccountSpendingReport:
        window = self._window(since, until)
        found = await self.figures.spenders(window, share_percent=share_percent, lines_max=LINES_MAX + 1)
        report = _report(window, found.accounts)
        return AccountSpendingReport(
            window=window,
            lines=report.lines,
            is_complete=report.is_complete,
            cost_nanodollars=found.cost_nanodollars,
        )

    async def latencies(self, since: datetime | None, until: datetime | None) -> Report[Latency]:
        window = self._window(since, until)
        return _report(window, await self.figures.latencies(window, lines_max=LINES_MAX + 1))

    async def refusals(self, since: datetime | None, until: datetime | None) -> Report[Refusal]:
        window = self._window(since, until)
        return _report(window, await self.figures.refusals(window, lines_max=LINES_MAX + 1))

    async def cache_rates(
        self, since: datetime | None, until: datetime | None, *, step: Step
    ) -> Report[CacheRate]:
        window = self._window(since, until, DAYS_BY_THE_HOUR_MAX if step == "hour" else DAYS_MAX)
        return _report(window, await self.figures.cache_rates(window, step=step, lines_max=LINES_MAX + 1))

    async def success_rates(self, since: datetime | None, until: datetime | None) -> Report[SuccessRate]:
        window = self._window(since, until)
        return _report(window, await self.figures.success_rates(window, lines_max=LINES_MAX + 1))

    async def costs(self, since: datetime | None, until: datetime | None) -> Report[CostLine]:
        window = self._window(since, until)
        return _report(window, await self.figures.costs(window, lines_max=LINES_MAX + 1))

    async def last_days(self, days: int) -> Report[CostLine]:
        until = self.now()
        return await self.costs(until - timedelta(days=days), until)

    def _window(self, since: datetime | None, until: datetime | None, days_max: int = DAYS_MAX) -> Window:
        """Raises WindowInvalid."""
        try:
            until = until or self.now()
            since = since or until - timedelta(days=DAYS_DEFAULT)
        except OverflowError:
            raise WindowInvalid(days_max=days_max) from None
        if not timedelta(0) < until - since <= timedelta(days=days_max):
            raise WindowInvalid(days_max=days_max)
        return Window(since=since, until=until)


def _report(window: Window, lines: list[T]) -> Report[T]:
    return Report(window=window, lines=lines[:LINES_MAX], is_complete=len(lines) <= LINES_MAX)
