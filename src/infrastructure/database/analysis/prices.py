import asyncio
import math
import time
from collections.abc import Callable
from typing import LiteralString

from features.analysis.application.ports import Prices
from infrastructure.database.clients import AdminClient
from shared.errors import Unavailable
from shared.ids import AnalysisType

COSTS: LiteralString = "select type, credits from public.analysis_costs"
REMEMBERED_FOR_S = 60.0


class PostgresPrices(Prices):
    """Caches the price table for one minute. While the database is unavailable, the last known prices stay
    valid.
    """

    def __init__(self, session: AdminClient, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._now_s = now_s
        self._credits: dict[str, int] = {}
        self._until_s = -math.inf
        self._reading = asyncio.Lock()

    async def credits(self, analysis_type: AnalysisType) -> int:
        if self._now_s() >= self._until_s:
            await self._refresh()
        return self._credits[analysis_type]

    async def _refresh(self) -> None:
        if self._credits and self._reading.locked():
            return  # another task refreshes; callers continue with the old prices
        async with self._reading:
            if self._now_s() < self._until_s:
                return
            try:
                rows = await self._session.fetch(COSTS)
            except Unavailable:
                if not self._credits:
                    raise
                return
            self._credits = {row["type"]: row["credits"] for row in rows}
            self._until_s = self._now_s() + REMEMBERED_FOR_S
