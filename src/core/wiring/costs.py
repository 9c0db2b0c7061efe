"""What is written down about money and work: prices, calls, data points."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from infrastructure.database.calls import PostgresCallLog
from infrastructure.database.data_points import PostgresDataPoints
from infrastructure.database.prices import PostgresPriceBook
from infrastructure.database.sessions import Database


@dataclass(frozen=True, slots=True)
class Books:
    prices: PostgresPriceBook
    calls: PostgresCallLog
    points: PostgresDataPoints


@asynccontextmanager
async def open_books(database: Database) -> AsyncGenerator[Books]:
    """Open them before whoever spends money, so that they are closed after it."""
    books = Books(PostgresPriceBook(database), PostgresCallLog(database), PostgresDataPoints(database))
    await books.prices.refresh()
    try:
        yield books
    finally:
        for book in (books.calls, books.points, books.prices):
            await book.close()
