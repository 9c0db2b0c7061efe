from typing import LiteralString

from features.operations.application.ports import Retention, RetentionPreview
from infrastructure.database.clients import AdminClient
from infrastructure.database.runs.runs import LOST_AFTER, STUCK_AFTER

REMOVE: LiteralString = "select scheduling.purge($1, $2) as removed"
COUNT: LiteralString = "select scheduling.count_purgeable($1) as found"
LOST_RUNS: LiteralString = "select scheduling.count_stalled_runs($1, $2) as found"
LAPSED_LOTS: LiteralString = "select accounts, credits from scheduling.count_expired_lots()"


class PostgresRetention(Retention, RetentionPreview):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def remove(self, table: str, rows_max: int) -> int:
        (row,) = await self._session.fetch(REMOVE, table, rows_max)
        return row["removed"]

    async def count(self, table: str) -> int:
        (row,) = await self._session.fetch(COUNT, table)
        return row["found"]

    async def lost_runs(self) -> int:
        (row,) = await self._session.fetch(LOST_RUNS, LOST_AFTER, STUCK_AFTER)
        return row["found"]

    async def lapsed_lots(self) -> tuple[int, int]:
        (row,) = await self._session.fetch(LAPSED_LOTS)
        return row["accounts"], row["credits"]
