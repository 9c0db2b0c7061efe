"""Recorders of costs and metrics: price list, call log, data points."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from infrastructure.database.clients import Database
from infrastructure.database.costs.metrics import PostgresMetrics
from infrastructure.database.costs.prices import PostgresPriceBook
from infrastructure.database.costs.provider_calls import PostgresCallLog
from infrastructure.database.costs.reports import PostgresRunLedger
from infrastructure.monitoring.cost_tracker import CostTracker


@dataclass(frozen=True, slots=True)
class CostRecorders:
    prices: PostgresPriceBook
    calls: PostgresCallLog
    points: PostgresMetrics
    costs: CostTracker


@asynccontextmanager
async def open_cost_recorders(database: Database) -> AsyncGenerator[CostRecorders]:
    """Open the recorders before the providers, so that they are closed after the last call is recorded."""
    prices, calls = PostgresPriceBook(database), PostgresCallLog(database)
    recorders = CostRecorders(
        prices, calls, PostgresMetrics(database), CostTracker(calls, prices, PostgresRunLedger(database))
    )
    await recorders.prices.refresh()
    try:
        yield recorders
    finally:
        for recorder in (recorders.calls, recorders.points, recorders.prices):
            await recorder.close()
