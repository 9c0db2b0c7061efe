"""Postgres adapter of the Stripe inbox: insert, list and replay events."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString

from asyncpg import Record

from features.billing.application.stripe_events.ports import EventFilter, StripeEventStore
from features.billing.domain.event_queue import EventStatus, InboxEvent
from features.billing.domain.stripe_events import StripeEvent
from infrastructure.database.billing.stripe_event_queue import PostgresStripeEventInserts
from infrastructure.database.clients import Database

COLUMNS: LiteralString = """
    stripe_event_id as id, position, account_id, type, api_version, created_at, received_at, status, due_at,
    attempts, failures, replays, last_error, applied_at
"""
KNOWN: LiteralString = """
select stripe_event_id from public.webhook_events where stripe_event_id = any ($1::text[])
"""
PAGE: LiteralString = (
    "select "
    + COLUMNS
    + """
from public.webhook_events
where ($1::text is null or status = $1) and ($2::text is null or type = $2)
    and ($3::uuid is null or account_id = $3)
    and ($4::timestamptz is null or created_at >= $4) and ($5::timestamptz is null or created_at < $5)
    and ($6::bigint is null or position < $6)
order by position desc limit $7
"""
)
FIND: LiteralString = (
    "select "
    + COLUMNS
    + """, effects::text, payload
from public.webhook_events where stripe_event_id = $1
"""
)
# Revokes a current claim. This is safe at any time because the effects of an event are idempotent.
REPLAY: LiteralString = (
    """
update public.webhook_events
set status = 'pending', due_at = clock_timestamp(), claimed_by = null, applied_at = null, attempts = 0,
    failures = 0, replays = replays + 1
where stripe_event_id = $1
returning """
    + COLUMNS
)
REPLAY_ALL: LiteralString = """
with chosen as (
    select stripe_event_id from public.webhook_events
    where created_at >= $1 and created_at < $2 and status <> 'pending'
        and (cardinality($3::text[]) = 0 or type = any ($3))
        and (cardinality($4::text[]) = 0 or status = any ($4))
    order by position limit $5 for no key update skip locked
)
update public.webhook_events as e
set status = 'pending', due_at = clock_timestamp(), claimed_by = null, applied_at = null, attempts = 0,
    failures = 0, replays = e.replays + 1
from chosen where e.stripe_event_id = chosen.stripe_event_id
returning true
"""


class PostgresStripeEvents(StripeEventStore):
    def __init__(self, database: Database) -> None:
        self._session = database.admin("stripe events")
        self._arrivals = PostgresStripeEventInserts(database)

    async def add(self, event: StripeEvent) -> bool:
        return await self._arrivals.add(event)

    async def stored(self, event_ids: Sequence[str]) -> set[str]:
        rows = await self._session.fetch(KNOWN, list(event_ids))
        return {row["stripe_event_id"] for row in rows}

    async def page(self, only: EventFilter, *, before: int | None, events_max: int) -> list[InboxEvent]:
        rows = await self._session.fetch(
            PAGE, only.status, only.type, only.account_id, only.since, only.until, before, events_max
        )
        return [_event(row) for row in rows]

    async def find(self, event_id: str) -> tuple[InboxEvent, bytes, bytes] | None:
        rows = await self._session.fetch(FIND, event_id)
        if not rows:
            return None
        (row,) = rows
        return _event(row), row["effects"].encode(), row["payload"]

    async def replay(self, event_id: str) -> InboxEvent | None:
        rows = await self._session.fetch(REPLAY, event_id)
        return _event(rows[0]) if rows else None

    async def replay_all(
        self,
        *,
        since: datetime,
        until: datetime,
        types: Sequence[str],
        statuses: Sequence[EventStatus],
        events_max: int,
    ) -> int:
        rows = await self._session.fetch(REPLAY_ALL, since, until, list(types), list(statuses), events_max)
        return len(rows)


def _event(row: Record) -> InboxEvent:
    return InboxEvent(**{name: row[name] for name in InboxEvent.__struct_fields__})
