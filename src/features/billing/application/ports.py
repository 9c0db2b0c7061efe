"""What billing needs of Stripe and of the database, in its own words."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Protocol

import msgspec

from features.billing.domain.outcomes import Applied
from features.billing.domain.snapshots import (
    CheckoutSnapshot,
    InvoiceSnapshot,
    ReturnSnapshot,
    SubscriptionSnapshot,
)
from shared.ids import AccountId


class RawEvent(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    type: str
    created_at: datetime
    payload: bytes


class StripeRecords(Protocol):
    """What Stripe has now. None: it has no such thing. Raises Unavailable when it does not answer."""

    async def subscription(self, subscription_id: str) -> SubscriptionSnapshot | None: ...

    async def invoice(self, invoice_id: str) -> InvoiceSnapshot | None: ...

    async def checkout(self, session_id: str) -> CheckoutSnapshot | None: ...

    async def refunds_of(self, charge_id: str) -> list[ReturnSnapshot]: ...

    async def dispute(self, dispute_id: str) -> ReturnSnapshot | None: ...

    def subscriptions(self) -> AsyncIterator[SubscriptionSnapshot]:
        """All there are, page by page, the ended ones too."""
        ...

    def invoices(self, *, since: datetime) -> AsyncIterator[InvoiceSnapshot]: ...

    def events(self, *, since: datetime, until: datetime) -> AsyncIterator[RawEvent]:
        """Newest first; Stripe keeps them for 30 days."""
        ...


class SubscriptionBook(Protocol):
    """What is known here of Stripe's subscriptions. Repeating a call changes nothing."""

    async def now(self) -> datetime:
        """The database's time. To be read before Stripe is asked, and handed over with the answer."""
        ...

    async def apply_subscription(
        self, account_id: AccountId, snapshot: SubscriptionSnapshot, seen_at: datetime
    ) -> Applied:
        """What is older than what is known changes nothing. Raises PriceUnknown."""
        ...
