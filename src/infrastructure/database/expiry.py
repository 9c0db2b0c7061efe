"""Purge of expired rows in the background of requests, by any process."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import LiteralString

from infrastructure.database.clients import AdminClient
from shared.errors import Unavailable

INTERVAL_S = 300.0
ROWS_MAX = 5_000


class PeriodicPurge:
    """``statement`` deletes at most $1 rows and returns each of them."""

    def __init__(
        self, session: AdminClient, statement: LiteralString, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._session = session
        self._statement: LiteralString = statement
        self._now_s = now_s
        self._due_at_s = now_s() + INTERVAL_S
        self._sweeping: asyncio.Task[None] | None = None

    def now_and_then(self) -> None:
        """Starts a purge if the last one is five minutes old; cheap enough to call on every request."""
        if self._now_s() >= self._due_at_s:
            self._due_at_s = self._now_s() + INTERVAL_S
            self._sweeping = asyncio.create_task(self._remove_all())

    async def _remove_all(self) -> None:
        with suppress(Unavailable):  # the next purge deletes the same rows
            while len(await self._session.fetch(self._statement, ROWS_MAX)) == ROWS_MAX:
                pass

    async def close(self) -> None:
        if self._sweeping is not None:
            await self._sweeping
