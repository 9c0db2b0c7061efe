"""What the inbox needs of the database. Billing's other use cases need none of it."""

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
    """``since`` is included, ``until`` is not; both are about when Stripe made the event."""

    status: EventStatus | None = None
    type: str | None = None
    account_id: AccountId | None = None
    since: datetime | None = None
    until: datetime | None = None


class StripeEventStore(Protocol):
    """Everything that Stripe ever told us."""

    async def add(self, event: StripeEvent) -> bool:
        """Durable when it returns. False: it was there before."""
        ...

    async def known(self, event_ids: Sequence[str]) -> set[str]: ...

    async def page(self, only: EventFilter, *, before: int | None, events_max: int) -> list[InboxEvent]:
        """Newest first."""
        ...

    async def find(self, event_id: str) -> tuple[InboxEvent, bytes, bytes] | None:
        """With what it changed, as JSON, and its payload."""
        ...

    async def replay(self, event_id: str) -> InboxEvent | None:
        """Put in line again, from the beginning."""
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
        """How many; those of every type, or status, when none is named."""
        ...


class StripeEventQueue(Protocol):
    """The events that are due."""

    async def claim(self, events_max: int) -> list[ClaimedEvent]:
        """Those that wait the longest, for a minute. Who does not come back within it has failed."""
        ...

    async def hold(self, event: ClaimedEvent) -> bool:
        """Until the transaction ends nobody else has it. False: somebody else has, or it is done."""
        ...

    async def tick(
        self,
        event: ClaimedEvent,
        status: Literal["applied", "ignored"],
        account_id: AccountId | None,
        effects: Sequence[Effect],
    ) -> None: ...

    async def put_back(self, event: ClaimedEvent, setback: RetryDecision) -> bool:
        """False: it is somebody else's by now."""
        ...


class SubscriptionRepository(Protocol):
    """What Stripe's word changes here. Every call may be repeated."""

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

    async def return_payment(self, returned: ReversalSnapshot) -> ReversalResult: ...

    async def undo_return(self, reference: str) -> ReversalResult: ...


class PaymentRecords(Protocol):
    async def is_account(self, account_id: AccountId) -> bool:
        """Whether there is such an account; one that is deleted and could be restored is there."""
        ...

    async def note_invoice(
        self, account_id: AccountId, subscription_id: UUID, plan: str, invoice: InvoiceSnapshot
    ) -> bool:
        """What a paid invoice of a subscription bought, so that giving the money back takes that back. False:
        its period is not known here.
        """
        ...
