"""Priced usage records, one for each attempt."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID, uuid4

import structlog

from features.costs.application.ports import CallLog
from features.costs.domain.provider_calls import CallOutcome, ModelCall
from infrastructure.ai.routing.time_source import TimeSource
from shared.cancellation import run_uncancelled
from shared.llm import Cache, CostOwner, Usage

ERROR_LENGTH_MAX = 200

log: structlog.stdlib.BoundLogger = structlog.get_logger("ai")


class Prices(Protocol):
    """Implemented by PriceBook."""

    def of_tokens(self, provider: str, model: str, usage: Usage, at: datetime) -> int | None: ...


class UsageRecorder:
    def __init__(self, calls: CallLog, prices: Prices, clocks: TimeSource) -> None:
        self.clocks = clocks
        self._calls = calls
        self._prices = prices
        self._unpriced: set[tuple[str, str]] = set()  # bounded by the number of models

    def open(self, spender: CostOwner, task: str) -> "RequestUsage":
        return RequestUsage(self, spender, task)

    def price(self, provider: str, model: str, usage: Usage, at: datetime) -> int | None:
        price = self._prices.of_tokens(provider, model, usage, at)
        if price is None and (provider, model) not in self._unpriced:
            self._unpriced.add((provider, model))
            log.warning("no_price", provider=provider, model=model)
        return price

    async def write(self, call: ModelCall) -> None:
        await run_uncancelled(self._calls.record_model_call(call))


@dataclass(slots=True)
class RequestUsage:
    """The usage records of one request and their total cost."""

    books: UsageRecorder
    spender: CostOwner
    task: str
    call_id: UUID = field(default_factory=uuid4)
    attempts: int = 0
    is_empty: bool = True
    cost_nanodollars: int | None = 0

    def line(self, provider: str, model: str) -> "AttemptUsage":
        """Start the record of an attempt."""
        self.attempts += 1
        self.is_empty = False
        return AttemptUsage(self, provider, model, self.attempts, self.books.clocks.monotonic_s())

    def line_without_attempt(self, provider: str, model: str, *, began_s: float) -> "AttemptUsage":
        self.is_empty = False
        return AttemptUsage(self, provider, model, 0, began_s)

    def add(self, cost_nanodollars: int | None) -> None:
        if cost_nanodollars is None or self.cost_nanodollars is None:
            self.cost_nanodollars = None
        else:
            self.cost_nanodollars += cost_nanodollars


@dataclass(frozen=True, slots=True)
class AttemptUsage:
    """A usage record that is written when the outcome is known."""

    tally: RequestUsage
    provider: str
    model: str
    attempt: int
    began_s: float

    async def write(
        self,
        outcome: CallOutcome,
        *,
        is_simulated: bool,
        usage: Usage | None = None,  # None: nothing is charged
        is_estimated: bool = False,
        cache: Cache = "none",
        error: str | None = None,
        gateway_log_id: str | None = None,
    ) -> None:
        """Completes even if the caller is cancelled."""
        tally, books = self.tally, self.tally.books
        at = books.clocks.now()
        cost = 0 if usage is None else books.price(self.provider, self.model, usage, at)
        tally.add(cost)
        await books.write(
            ModelCall(
                at=at,
                call_id=tally.call_id,
                attempt=self.attempt,
                spender=tally.spender,
                provider=self.provider,
                model=self.model,
                task=tally.task,
                outcome=outcome,
                usage=usage or Usage(),
                is_estimated=is_estimated,
                cost_nanodollars=cost,
                latency_ms=(books.clocks.monotonic_s() - self.began_s) * 1_000,
                cache=cache,
                is_simulated=is_simulated,
                error=None if error is None else error[:ERROR_LENGTH_MAX],
                gateway_log_id=gateway_log_id,
            )
        )
