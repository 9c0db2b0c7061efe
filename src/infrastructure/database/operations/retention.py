from typing import LiteralString

from features.operations.application.ports import Retention, RetentionPreview
from features.operations.domain.retention import RetentionRule
from infrastructure.database.clients import AdminClient
from infrastructure.database.runs.runs import LOST_AFTER, STUCK_AFTER

PURGE: LiteralString = "select scheduling.purge($1, $2, $3) as purged"
COUNT: LiteralString = "select scheduling.count_purgeable($1, $2) as found"
STALLED_RUNS: LiteralString = "select scheduling.count_stalled_runs($1, $2) as found"
EXPIRED_LOTS: LiteralString = "select accounts, credits from scheduling.count_expired_lots()"


class PostgresRetention(Retention, RetentionPreview):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def purge(self, rule: RetentionRule) -> int:
        (row,) = await self._session.fetch(PURGE, rule.table, rule.retention, rule.rows_per_batch)
        return row["purged"]

    async def count(self, rule: RetentionRule) -> int:
        (row,) = await self._session.fetch(COUNT, rule.table, rule.retention)
        return row["found"]

    async def stalled_runs(self) -> int:
        (row,) = await self._session.fetch(STALLED_RUNS, LOST_AFTER, STUCK_AFTER)
        return row["found"]

    async def expired_lots(self) -> tuple[int, int]:
        (row,) = await self._session.fetch(EXPIRED_LOTS)
        return row["accounts"], row["credits"]
