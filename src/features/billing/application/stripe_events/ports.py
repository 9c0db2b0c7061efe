"""Database ports of the Stripe inbox, used only by the event use cases."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

import msgspec

from features.billing.domain.event_queue import ClaimedEvent, Effect, EventStatus, InboxEvent, RetryDecision
from features.billing.domain.results import ReversalResult, SubscriptionResult
from features.billing.domain.stripe_events import StripeEvent
from features.billing.domain.stripe_snapshots import (
    CheckoutSnapshot,
    InvoiceSnapshot,
    ReversalSnapshot,
    SubscriptionSnapshot,
)
from shared.ids import AccountId


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """``since`` is inclusive, ``until`` exclusive; both refer to the event's creation at Stripe."""

    status: EventStatus | None = None
    type: str | None = None
    account_id: AccountId | None = None
    since: datetime | None = None
    until: datetime | None = None


class StripeEventStore(Protocol):
    """Inbox: every event received from Stripe."""

    async def add(self, event: StripeEvent) -> bool:
        """The event is durable when this returns. Returns False for a duplicate."""
        ...

    async def stored(self, event_ids: Sequence[str]) -> set[str]: ...

    async def page(self, only: EventFilter, *, before: int | None, events_max: int) -> list[InboxEvent]:
        """Events before the position, newest first."""
        ...

    async def find(self, event_id: str) -> tuple[InboxEvent, bytes, bytes] | None:
        """Return the event, its effects as JSON, and its payload."""
        ...

    async def replay(self, event_id: str) -> InboxEvent | None:
        """Requeue the event and reset its counters. Returns None for an unknown id."""
        ...

    async def replay_all(
        self,
        *,
        since: datetime,
        until: datetime,
        types: Sequence[str],
        statuses: Sequence[EventStatus],
        events_max: int,
    ) -> int:
        """Requeue the matching events; return their number. An empty filter matches every value."""
        ...


class StripeEventQueue(Protocol):
    """Queue of due events, protected by leases."""

    async def claim(self, events_max: int) -> list[ClaimedEvent]:
        """Claim the longest waiting events for one minute. An expired claim counts as a failure."""
        ...

    async def lock(self, event: ClaimedEvent) -> bool:
        """Lock the event until the transaction ends. Returns False if the claim is lost or it is done."""
        ...

    async def mark_processed(
        self,
        event: ClaimedEvent,
        status: Literal["applied", "ignored"],
        account_id: AccountId | None,
        effects: Sequence[Effect],
    ) -> None: ...

    async def requeue(self, event: ClaimedEvent, retry_decision: RetryDecision) -> bool:
        """Store the retry decision. Returns False if another worker has claimed the event."""
        ...


class SubscriptionRepository(Protocol):
    """Writes that follow from Stripe's state. Every call is idempotent."""

    def transaction(self) -> AbstractAsyncContextManager[None]: ...

    async def now(self) -> datetime: ...

    async def account_of(
        self, *, customer_id: str | None = None, subscription_id: str | None = None
    ) -> AccountId | None: ...

    async def plan_of(self, price_id: str) -> str | None: ...

    async def apply_subscription(
        self, account_id: AccountId, snapshot: SubscriptionSnapshot, seen_at: datetime
    ) -> SubscriptionResult: ...

    async def complete_purchase(self, checkout: CheckoutSnapshot) -> int: ...

    async def close_checkout(
        self,
        session_id: str,
        status: Literal["completed", "expired", "failed"],
        *,
        checkout_id: UUID | None = None,
    ) -> bool: ...

    async def save_invoice(
        self, account_id: AccountId, invoice: InvoiceSnapshot, seen_at: datetime
    ) -> bool: ...

    async def grant_period(
        self,
        account_id: AccountId,
        subscription_id: UUID,
        plan: str,
        *,
        period_start: datetime,
        period_end: datetime,
    ) -> int: ...

    async def reverse_payment(self, reversal: ReversalSnapshot) -> ReversalResult: ...

    async def undo_reversal(self, reference: str) -> ReversalResult: ...


class PaymentRecords(Protocol):
    async def is_account(self, account_id: AccountId) -> bool:
        """Whether the account exists; a deleted account that can be restored exists."""
        ...

    async def record_invoice(
        self, account_id: AccountId, subscription_id: UUID, plan: str, invoice: InvoiceSnapshot
    ) -> bool:
        """Record the credits that a paid invoice bought, so that a refund can reclaim them. Returns False if
        the invoice's period is unknown.
        """
        ...
