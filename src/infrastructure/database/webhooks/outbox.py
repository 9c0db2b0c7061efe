from collections.abc import Sequence
from datetime import timedelta
from typing import LiteralString

from features.webhooks.application.ports import Outbox
from features.webhooks.domain.delivery import ClaimedDelivery, DeliveryDecision, DeliveryResponse
from infrastructure.database.clients import AdminClient

CLAIM: LiteralString = "select * from webhooks.claim($1, $2, $3)"
SETTLE: LiteralString = """
select webhooks.record_attempt($1, $2, $3, $4, $5, $6, $7, $8, $9) as is_settled
"""


class PostgresOutbox(Outbox):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def claim(
        self, deliveries_max: int, *, per_account_max: int, lease: timedelta
    ) -> Sequence[ClaimedDelivery]:
        rows = await self._session.fetch(CLAIM, deliveries_max, per_account_max, lease)
        return [
            ClaimedDelivery(**{name: row[name] for name in ClaimedDelivery.__struct_fields__}) for row in rows
        ]

    async def settle(
        self, due: ClaimedDelivery, response: DeliveryResponse, decision: DeliveryDecision
    ) -> bool:
        (row,) = await self._session.fetch(
            SETTLE,
            due.account_id,
            due.id,
            due.claimed_until,
            decision.status,
            decision.retry_in,
            response.http_status,
            response.error,
            response.duration_ms,
            decision.disables,
        )
        return row["is_settled"]
