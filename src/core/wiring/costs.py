"""What is written down about money and work: prices, calls, data points."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from infrastructure.database.clients import Database
from infrastructure.database.costs.metrics import PostgresMetrics
from infrastructure.database.costs.prices import PostgresPriceBook
from infrastructure.database.costs.provider_calls import PostgresCallLog


@dataclass(frozen=True, slots=True)
class CostRecorders:
    prices: PostgresPriceBook
    calls: PostgresCallLog
    points: PostgresMetrics


@asynccontextmanager
async def open_books(database: Database) -> AsyncGenerator[CostRecorders]:
    """Open them before whoever spends money, so that they are closed after it."""
    books = CostRecorders(PostgresPriceBook(database), PostgresCallLog(database), PostgresMetrics(database))
    await books.prices.refresh()
    try:
        yield books
    finally:
        for book in (books.calls, books.points, books.prices):
            await book.close()
