from typing import Literal, Protocol
from uuid import UUID

import msgspec

from features.costs.domain.breakdown import CallCosts, CostBreakdown
from features.costs.domain.provider_calls import ModelCall, ScrapeCall
from features.costs.domain.reports import (
    AccountSpendings,
    CacheRate,
    CostLine,
    Latency,
    Refusal,
    SuccessRate,
    Window,
)

Step = Literal["hour", "day"]


class CallLog(Protocol):
    """A record is durable when the method returns. While the database is unavailable, records are stored
    locally and written later. Never fails and is shielded from cancellation, because the money is already
    spent.
    """

    async def record_model_call(self, call: ModelCall) -> None: ...

    async def record_scrape(self, call: ScrapeCall) -> None: ...


class RunSpending(msgspec.Struct, frozen=True, kw_only=True):
    scrapes: CallCosts
    model_calls: CallCosts
    credits_charged: int


class RunLedger(Protocol):
    """Recorded costs of a run, independent of the process that executed it."""

    async def spending(self, run_id: UUID) -> RunSpending: ...


class RunBreakdowns(Protocol):
    """Implemented by the cost tracker."""

    async def get_breakdown(self, run_id: UUID, *, credit_nanodollars: int) -> CostBreakdown: ...


class CostFigures(Protocol):
    """Reports from recorded calls and requests, with at most ``lines_max`` lines, most important first."""

    async def spenders(self, window: Window, *, share_percent: int, lines_max: int) -> AccountSpendings:
        """Returns the accounts that together cause ``share_percent`` of the model costs, largest first."""
        ...

    async def latencies(self, window: Window, *, lines_max: int) -> list[Latency]: ...

    async def refusals(self, window: Window, *, lines_max: int) -> list[Refusal]:
        """Most frequent first. Requests without an account are counted in the minute in which they ended."""
        ...

    async def cache_rates(self, window: Window, *, step: Step, lines_max: int) -> list[CacheRate]: ...

    async def success_rates(self, window: Window, *, lines_max: int) -> list[SuccessRate]: ...

    async def costs(self, window: Window, *, lines_max: int) -> list[CostLine]: ...
