"""Postgres adapter of the Stripe event queue: insert, claim, mark processed and requeue."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, LiteralString
from uuid import UUID, uuid4

import msgspec

from features.billing.application.stripe_events.ports import PaymentRecords, StripeEventQueue
from features.billing.domain.event_queue import FAILURES_MAX, ClaimedEvent, Effect, RetryDecision
from features.billing.domain.stripe_events import StripeEvent
from features.billing.domain.stripe_snapshots import InvoiceSnapshot
from infrastructure.database.clients import AdminClient, Database
from infrastructure.resilience.micro_batcher import MicroBatcher
from shared.ids import AccountId

# Inserts in id order, so that two statements with the same events cannot deadlock.
ADD: LiteralString = """
insert into public.webhook_events (stripe_event_id, type, api_version, created_at, payload)
select * from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::bytea[]) as e (
    stripe_event_id, type, api_version, created_at, payload
)
order by e.stripe_event_id
on conflict (stripe_event_id) do nothing
returning stripe_event_id
"""
# An expired claim counts as a failure: the worker probably died while it processed the event.
CLAIM: LiteralString = """
with due as (
    select stripe_event_id from public.webhook_events
    where status in ('pending', 'parked') and due_at <= clock_timestamp()
    order by due_at limit $1 for update skip locked
)
update public.webhook_events as e
set claimed_by = $2, due_at = clock_timestamp() + $3, attempts = e.attempts + 1,
    failures = e.failures + (e.claimed_by is not null)::integer,
    status = case when e.claimed_by is not null and e.failures + 1 >= $4 then 'dead' else e.status end,
    last_error = case when e.claimed_by is not null then 'never_came_back' else e.last_error end
from due where e.stripe_event_id = due.stripe_event_id
returning e.stripe_event_id as id, e.type, e.payload, e.claimed_by as claim, clock_timestamp() as claimed_at,
    e.received_at, e.attempts, e.failures, e.status
"""
HOLD: LiteralString = """
select true from public.webhook_events
where stripe_event_id = $1 and claimed_by = $2 and status in ('pending', 'parked') for no key update
"""
# If the account is deleted concurrently, the subquery returns no row and the event is still marked processed.
TICK: LiteralString = """
update public.webhook_events
set status = $2, applied_at = clock_timestamp(), claimed_by = null, last_error = null,
    account_id = coalesce((select a.id from public.accounts as a where a.id = $3 for key share), account_id),
    effects = effects || jsonb_build_array(
        jsonb_build_object('at', clock_timestamp(), 'status', $2::text, 'changes', $4::jsonb))
where stripe_event_id = $1
"""
PUT_BACK: LiteralString = """
update public.webhook_events
set status = $3, last_error = $4, failures = $5, claimed_by = null, due_at = clock_timestamp() + $6
where stripe_event_id = $1 and claimed_by = $2 and status in ('pending', 'parked')
returning true
"""
NOTE_INVOICE: LiteralString = "select billing.record_invoice($1, $2, $3, $4, $5, $6, $7, $8) as is_noted"
IS_ACCOUNT: LiteralString = "select true from public.accounts where id = $1"
CLAIM_FOR = timedelta(seconds=60)


class PostgresStripeEventInserts:
    """Micro-batched inserts: events that arrive together share one statement and one disk write."""

    def __init__(self, database: Database) -> None:
        self._session = database.admin("stripe events")
        self._batches = MicroBatcher(self._add_all)

    async def add(self, event: StripeEvent) -> bool:
        return await self._batches.ask(event)

    async def _add_all(self, events: list[StripeEvent]) -> list[bool]:
        rows = await self._session.fetch(
            ADD,
            [event.id for event in events],
            [event.type for event in events],
            [event.api_version for event in events],
            [event.created_at for event in events],
            [event.payload for event in events],
        )
        # An event that occurs twice in one batch is new only once.
        new = Counter(row["stripe_event_id"] for row in rows)
        return [self._taken(new, event.id) for event in events]

    @staticmethod
    def _taken(new: Counter[str], event_id: str) -> bool:
        new[event_id] -= 1
        return new[event_id] >= 0


class PostgresStripeEventQueue(StripeEventQueue):
    def __init__(self, session: AdminClient, *, claim_for: timedelta = CLAIM_FOR) -> None:
        self._session = session
        self._claim_for = claim_for

    async def claim(self, events_max: int) -> list[ClaimedEvent]:
        rows = await self._session.fetch(CLAIM, events_max, uuid4(), self._claim_for, FAILURES_MAX)
        return [
            ClaimedEvent(**{name: row[name] for name in ClaimedEvent.__struct_fields__})
            for row in rows
            if row["status"] != "dead"
        ]

    async def lock(self, event: ClaimedEvent) -> bool:
        return bool(await self._session.fetch(HOLD, event.id, event.claim))

    async def mark_processed(
        self,
        event: ClaimedEvent,
        status: Literal["applied", "ignored"],
        account_id: AccountId | None,
        effects: Sequence[Effect],
    ) -> None:
        await self._session.fetch(TICK, event.id, status, account_id, msgspec.json.encode(effects).decode())

    async def requeue(self, event: ClaimedEvent, retry_decision: RetryDecision) -> bool:
        rows = await self._session.fetch(
            PUT_BACK,
            event.id,
            event.claim,
            retry_decision.status,
            retry_decision.error,
            retry_decision.failures,
            retry_decision.due_in,
        )
        return bool(rows)


class PostgresPaymentRecords(PaymentRecords):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def is_account(self, account_id: AccountId) -> bool:
        return bool(await self._session.fetch(IS_ACCOUNT, account_id))

    async def record_invoice(
        self, account_id: AccountId, subscription_id: UUID, plan: str, invoice: InvoiceSnapshot
    ) -> bool:
        (row,) = await self._session.fetch(
            NOTE_INVOICE,
            account_id,
            subscription_id,
            # An upgrade's invoice has no period of its own; its creation lies within the period it changes.
            invoice.period_start or invoice.created_at,
            plan,
            invoice.period_start is None,
            invoice.payment_id,
            invoice.paid_cents,
            invoice.currency,
        )
        return row["is_noted"]
