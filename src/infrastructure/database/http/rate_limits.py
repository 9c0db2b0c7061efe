"""Rate limits and their windows in PostgreSQL, shared by all processes."""

import asyncio
import math
import time
from collections.abc import Callable
from typing import LiteralString

from infrastructure.database.clients import Database
from infrastructure.rate_limits.windows import BatchVerdict, Request, WindowStore, dealt_out, grouped
from infrastructure.resilience.micro_batcher import MicroBatcher
from shared.errors import Unavailable
from shared.middleware.rate_limits import FREE, Limit, Limits, Verdict

LIMITS: LiteralString = "select plan, route_class, requests_max, window_s from public.rate_limits"
TAKE: LiteralString = "select * from traffic.take($1, $2, $3, $4)"
LIMITS_REMEMBERED_FOR_S = 30.0
GENERAL = "general"  # for a route class without a row


class PostgresLimits(Limits):
    """Cached table of limits; a change takes effect within half a minute."""

    def __init__(self, database: Database, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._session = database.admin("rate limits")
        self._now_s = now_s
        self._table: dict[tuple[str, str], Limit] = {}
        self._until_s = -math.inf
        self._reading = asyncio.Lock()

    async def find(self, plan: str, route_class: str) -> Limit | None:
        if self._now_s() >= self._until_s:
            await self._refresh()
        return (
            self._table.get((plan, route_class))
            or self._table.get((FREE, route_class))
            or self._table.get((FREE, GENERAL))
        )

    async def _refresh(self) -> None:
        """Reload the limits. Raises Unavailable before the first load; later the old limits stay in use."""
        if self._table and self._reading.locked():
            return
        async with self._reading:
            if self._now_s() < self._until_s:
                return
            try:
                rows = await self._session.fetch(LIMITS)
            except Unavailable:
                if not self._table:
                    raise
                return
            self._table = {
                (row["plan"], row["route_class"]): Limit(
                    row["route_class"], row["requests_max"], row["window_s"]
                )
                for row in rows
            }
            self._until_s = self._now_s() + LIMITS_REMEMBERED_FOR_S


class PostgresWindows(WindowStore):
    """Windows in PostgreSQL. Concurrent requests share a round trip, and those of one client share a row
    update.
    """

    def __init__(self, database: Database) -> None:
        self._session = database.admin("rate windows")
        self._batches = MicroBatcher(self._take_all)

    async def take(self, key: str, limit: Limit) -> Verdict:
        return await self._batches.ask((key, limit))

    async def _take_all(self, requests: list[Request]) -> list[Verdict]:
        wanted = grouped(requests)  # sorted by key, so that concurrent batches cannot deadlock
        rows = await self._session.fetch(
            TAKE,
            [key for (key, _), _ in wanted],
            [count for _, count in wanted],
            [limit.requests_max for (_, limit), _ in wanted],
            [limit.window_s for (_, limit), _ in wanted],
        )
        return dealt_out(
            requests, {request: BatchVerdict(*row) for (request, _), row in zip(wanted, rows, strict=True)}
        )

    async def state(self) -> str:
        return "PostgreSQL"

    async def close(self) -> None:
        """Holds nothing open."""
