from datetime import datetime
from typing import LiteralString
from uuid import UUID

from features.billing.application.maintenance_ports import AccountStatus, ReconciliationQueries
from infrastructure.database.clients import AdminClient
from shared.ids import AccountId

IS_ACTIVE: LiteralString = "select deleted_at is null as is_active from public.accounts where id = $1"
ROW: LiteralString = "select id from public.subscriptions where stripe_subscription_id = $1"
CURRENT: LiteralString = """
select stripe_subscription_id from public.subscriptions
where account_id = $1 and clock = 'stripe' and ended_at is null
"""
UNSEEN: LiteralString = """
select s.account_id, s.stripe_subscription_id from public.subscriptions as s
where s.clock = 'stripe' and s.ended_at is null and s.seen_at < $1
order by s.seen_at, s.id limit $2
"""


class PostgresReconciliationQueries(ReconciliationQueries):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def status_of(self, account_id: AccountId) -> AccountStatus:
        rows = await self._session.fetch(IS_ACTIVE, account_id)
        if not rows:
            return "gone"
        return "active" if rows[0]["is_active"] else "deleted"

    async def row_of(self, stripe_subscription_id: str) -> UUID | None:
        rows = await self._session.fetch(ROW, stripe_subscription_id)
        return rows[0]["id"] if rows else None

    async def subscription_of(self, account_id: AccountId) -> str | None:
        rows = await self._session.fetch(CURRENT, account_id)
        return rows[0]["stripe_subscription_id"] if rows else None

    async def unseen_since(self, seen_at: datetime, subscriptions_max: int) -> list[tuple[AccountId, str]]:
        rows = await self._session.fetch(UNSEEN, seen_at, subscriptions_max)
        return [(AccountId(row["account_id"]), row["stripe_subscription_id"]) for row in rows]
