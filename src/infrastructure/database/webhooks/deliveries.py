from datetime import datetime
from typing import LiteralString
from uuid import UUID

import msgspec
from asyncpg import Record

from features.webhooks.application.ports import DeliveryFilter, DeliveryStore
from features.webhooks.domain.delivery import Attempt, Delivery, DeliveryId, DeliveryWithAttempts, notice_body
from features.webhooks.domain.endpoint import TEST_TYPE, Endpoint
from features.webhooks.domain.errors import EndpointNotFound
from infrastructure.database.clients import Database
from shared.caller import Caller
from shared.pagination import LATEST, Cursor

GET: LiteralString = """
select d.*, m.data::text as data, m.created_at as happened_at, array(
    select t from public.webhook_attempts as t
    where t.account_id = d.account_id and t.delivery_id = d.id
    order by t.number desc
    limit 100
) as last_attempts
from public.webhook_deliveries as d
join public.webhook_messages as m on m.account_id = d.account_id and m.id = d.message_id
where d.account_id = $1 and d.id = $2
"""
LIST: LiteralString = """
select * from public.webhook_deliveries
where account_id = $1 and (created_at, id) < ($2, $3)
    and ($4::uuid is null or endpoint_id = $4) and ($5::text is null or status = $5)
order by created_at desc, id desc
limit $6
"""
TEST_NOTICE: LiteralString = """
insert into public.webhook_messages (account_id, id, type, data)
values ($1, $2, $3, jsonb_build_object('endpoint_id', $4::uuid))
on conflict do nothing
"""
TEST_DELIVERY: LiteralString = """
insert into public.webhook_deliveries as d (account_id, message_id, endpoint_id, type)
select e.account_id, $2, e.id, $3 from public.webhook_endpoints as e where e.account_id = $1 and e.id = $4
for key share
on conflict (account_id, message_id, endpoint_id) do update set type = excluded.type
returning *
"""
# The worker that holds the lease of a claimed delivery keeps it: only the status is reset.
REPLAY: LiteralString = """
update public.webhook_deliveries as d
set status = 'pending',
    failures = case when d.claimed_until > clock_timestamp() then d.failures else 0 end,
    due_at = case when d.claimed_until > clock_timestamp() then d.due_at else clock_timestamp() end
where d.account_id = $1 and d.id = $2
returning *
"""
REPLAY_FAILED: LiteralString = """
with replayed as (
    update public.webhook_deliveries as d
    set status = 'pending', failures = 0, due_at = clock_timestamp()
    where d.account_id = $1 and d.endpoint_id = $2 and d.status in ('failed', 'dead')
        and d.created_at >= $3 and ($4::timestamptz is null or d.created_at < $4)
    returning 1
)
select count(*) as found from replayed
"""


class PostgresDeliveries(DeliveryStore):
    def __init__(self, database: Database) -> None:
        self._database = database
        self._session = database.admin("webhook deliveries")

    async def get(self, caller: Caller, delivery_id: DeliveryId) -> DeliveryWithAttempts | None:
        rows = await self._database.fetch_for(caller, GET, delivery_id)
        if not rows:
            return None
        (row,) = rows
        delivery = _delivery(row)
        return DeliveryWithAttempts(
            delivery=delivery,
            body=msgspec.Raw(notice_body(delivery.type, row["happened_at"], row["data"])),
            attempts=tuple(_attempt(attempt) for attempt in row["last_attempts"]),
        )

    async def list(
        self, caller: Caller, only: DeliveryFilter, *, after: Cursor | None, deliveries_max: int
    ) -> list[Delivery]:
        after = after or LATEST
        rows = await self._database.fetch_for(
            caller, LIST, after.at, after.id, only.endpoint_id, only.status, deliveries_max
        )
        return [_delivery(row) for row in rows]

    async def test(self, endpoint: Endpoint, message_id: UUID) -> Delivery:
        async with self._session.transaction():
            facts = (endpoint.account_id, message_id, TEST_TYPE, endpoint.id)
            await self._session.fetch(TEST_NOTICE, *facts)
            rows = await self._session.fetch(TEST_DELIVERY, *facts)
            if not rows:
                raise EndpointNotFound
            return _delivery(rows[0])

    async def replay(self, delivery: Delivery) -> Delivery | None:
        rows = await self._session.fetch(REPLAY, delivery.account_id, delivery.id)
        return _delivery(rows[0]) if rows else None

    async def replay_failed(self, endpoint: Endpoint, since: datetime, until: datetime | None) -> int:
        (row,) = await self._session.fetch(REPLAY_FAILED, endpoint.account_id, endpoint.id, since, until)
        return row["found"]


def _delivery(row: Record) -> Delivery:
    return Delivery(**{name: row[name] for name in Delivery.__struct_fields__})


def _attempt(row: Record) -> Attempt:
    return Attempt(**{name: row[name] for name in Attempt.__struct_fields__})
