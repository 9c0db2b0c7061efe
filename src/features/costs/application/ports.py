from typing import Literal, Protocol
from uuid import UUID

import msgspec

from features.costs.domain.breakdown import CallCosts
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
    """Durable when it returns. While the database is away calls are kept and written later. Never fails,
    and is never interrupted: money that is spent is written down.
    """

    async def record_model_call(self, call: ModelCall) -> None: ...

    async def record_scrape(self, call: ScrapeCall) -> None: ...


class RunSpending(msgspec.Struct, frozen=True, kw_only=True):
    scrapes: CallCosts
    model_calls: CallCosts
    credits_charged: int


class RunLedger(Protocol):
    """What was written down about a run, by whichever process did the work."""

    async def spending(self, run_id: UUID) -> RunSpending: ...


class CostFigures(Protocol):
    """Answers from what was written down, at most ``lines_max`` of them: what matters most comes first."""

    async def spenders(self, window: Window, *, share_percent: int, lines_max: int) -> AccountSpendings:
        """The accounts that together make up so much of what models cost; largest first."""
        ...

    async def latencies(self, window: Window, *, lines_max: int) -> list[Latency]: ...

    async def refusals(self, window: Window, *, lines_max: int) -> list[Refusal]:
        """The most frequent first. Requests without an account belong to the minute in which they ended."""
        ...

    async def cache_rates(self, window: Window, *, step: Step, lines_max: int) -> list[CacheRate]: ...

    async def success_rates(self, window: Window, *, lines_max: int) -> list[SuccessRate]: ...

    async def costs(self, window: Window, *, lines_max: int) -> list[CostLine]: ...
