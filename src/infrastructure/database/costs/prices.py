import asyncio
import time
from collections.abc import Callable
from datetime import datetime

import asyncpg
import structlog

from features.costs.domain.prices import PriceBook, TokenPrice, UnitPrice
from infrastructure.database.clients import Database
from infrastructure.database.costs.price_file import MODEL_PRICES, UNIT_PRICES
from shared.errors import Unavailable
from shared.llm import Usage

REFRESHED_AFTER_S = 300.0
TRIED_AGAIN_AFTER_S = 10.0

log: structlog.stdlib.BoundLogger = structlog.get_logger("prices")


class PostgresPriceBook(PriceBook):
    """Prices from the database, at most five minutes old. While the database is unavailable the last known
    prices apply; before the first read there are no prices.
    """

    def __init__(self, database: Database, *, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__((), ())
        self._session = database.admin("prices")
        self._now_s = now_s
        self._book = PriceBook((), ())
        self._due_at_s = now_s()
        self._reading: asyncio.Task[None] | None = None

    def of_tokens(self, provider: str, model: str, usage: Usage, at: datetime) -> int | None:
        self._refresh_now_and_then()
        return self._book.of_tokens(provider, model, usage, at)

    def of_units(self, provider: str, unit: str, count: float, at: datetime) -> int | None:
        self._refresh_now_and_then()
        return self._book.of_units(provider, unit, count, at)

    async def refresh(self) -> None:
        """Never fails: calls without a price are flagged, and the health check reports the database."""
        try:
            tokens = await self._session.fetch(MODEL_PRICES)
            units = await self._session.fetch(UNIT_PRICES)
        except (Unavailable, asyncpg.PostgresError) as error:
            self._due_at_s = self._now_s() + TRIED_AGAIN_AFTER_S
            log.warning("prices_not_read", cause=type(error).__name__)
            return
        self._due_at_s = self._now_s() + REFRESHED_AFTER_S
        self._book = PriceBook((TokenPrice(**row) for row in tokens), (UnitPrice(**row) for row in units))
        if not tokens:
            log.warning("no_prices", advice="run oslira migrate: until then calls have no known cost")

    def _refresh_now_and_then(self) -> None:
        if self._now_s() >= self._due_at_s and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self.refresh())

    async def close(self) -> None:
        if self._reading is not None:
            await self._reading
