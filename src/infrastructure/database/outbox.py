from collections.abc import Sequence
from datetime import timedelta
from typing import LiteralString

from features.notices.application.ports import Outbox
from features.notices.domain.delivery import Answer, Due, Verdict
from infrastructure.database.sessions import AdminSession

CLAIM: LiteralString = "select * from notices.claim($1, $2, $3)"
SETTLE: LiteralString = """
select notices.settle($1, $2, $3, $4, $5, $6, $7, $8, $9) as is_settled
"""


class PostgresOutbox(Outbox):
    def __init__(self, session: AdminSession) -> None:
        self._session = session

    async def claim(self, deliveries_max: int, *, apiece_max: int, lease: timedelta) -> Sequence[Due]:
        rows = await self._session.fetch(CLAIM, deliveries_max, apiece_max, lease)
        return [Due(**{name: row[name] for name in Due.__struct_fields__}) for row in rows]

    async def settle(self, due: Due, answer: Answer, verdict: Verdict) -> bool:
        (row,) = await self._session.fetch(
            SETTLE,
            due.account_id,
            due.id,
            due.claimed_until,
            verdict.status,
            verdict.retry_in,
            answer.http_status,
            answer.error,
            answer.duration_ms,
            verdict.disables,
        )
        return row["is_settled"]
