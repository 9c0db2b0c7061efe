"""What billing needs of Stripe and of the database, in its own words."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

import msgspec

from features.billing.domain.catalog import Offer, Pack, Plan
from features.billing.domain.plan_changes import PlanChange
from features.billing.domain.results import SubscriptionResult
from features.billing.domain.stripe_snapshots import (
    CheckoutSnapshot,
    InvoiceSnapshot,
    ReversalSnapshot,
    SubscriptionSnapshot,
)
from features.billing.domain.subscriptions import Checkout, Invoice, OpenSession, Order, SubscriptionStanding
from shared.caller import Caller
from shared.ids import AccountId
from shared.pagination import Cursor


class RawEvent(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    type: str
    created_at: datetime
    payload: bytes


class StripeReader(Protocol):
    """What Stripe has now. None: it has no such thing. Raises Unavailable when it does not answer."""

    async def subscription(self, subscription_id: str) -> SubscriptionSnapshot | None: ...

    async def invoice(self, invoice_id: str) -> InvoiceSnapshot | None: ...

    async def checkout(self, session_id: str) -> CheckoutSnapshot | None: ...

    async def refunds_of(self, charge_id: str) -> list[ReversalSnapshot]: ...

    async def dispute(self, dispute_id: str) -> ReversalSnapshot | None: ...

    def subscriptions(self) -> AsyncIterator[SubscriptionSnapshot]:
        """All there are, page by page, the ended ones too."""
        ...

    def invoices(self, *, since: datetime) -> AsyncIterator[InvoiceSnapshot]: ...

    def invoices_of(self, subscription_id: str) -> AsyncIterator[InvoiceSnapshot]: ...

    def events(self, *, since: datetime, until: datetime) -> AsyncIterator[RawEvent]:
        """Newest first; Stripe keeps them for 30 days."""
        ...


class SubscriptionStore(Protocol):
    """What is known here of Stripe's subscriptions. Repeating a call changes nothing."""

    async def now(self) -> datetime:
        """The database's time. To be read before Stripe is asked, and handed over with the answer."""
        ...

    async def apply_subscription(
        self, account_id: AccountId, snapshot: SubscriptionSnapshot, seen_at: datetime
    ) -> SubscriptionResult:
        """What is older than what is known changes nothing. Raises PriceUnknown."""
        ...


class SubscriptionLocks(Protocol):
    def hold(self, account_id: AccountId) -> AbstractAsyncContextManager[None]:
        """One change of an account's subscription at a time, in all processes together; the others wait.
        Raises SubscriptionBusy when the wait is too long.
        """
        ...


class CheckoutProvider(Protocol):
    """Where people pay. What is meant the same way twice is done once. Raises PaymentsUnavailable,
    PaymentsRefused, or BillingNotConfigured where there is none.
    """

    async def publish(self, offer: Offer) -> str:
        """Stripe's price of it, made when there is none."""
        ...

    async def open_customer(self, account_id: AccountId, *, email: str) -> str: ...

    async def open_checkout(self, checkout: Checkout, *, customer_id: str, price_id: str) -> OpenSession: ...

    async def expire_checkout(self, session_id: str) -> None:
        """Nobody pays there any more. Raises CheckoutCompleted when somebody has."""
        ...

    async def open_portal(self, customer_id: str, *, return_url: str, key: UUID) -> str:
        """The address of Stripe's own page for cards, bills and addresses."""
        ...


class SubscriptionProvider(Protocol):
    """What a subscription is about to be, at Stripe. ``key``: the same again does nothing twice. What a write
    has made of the subscription is read afterwards, by StripeRecords.
    """

    async def due_now_cents(self, customer_id: str, change: PlanChange, price_id: str) -> int:
        """What an upgrade at that instant would cost."""
        ...

    async def upgrade(self, change: PlanChange, price_id: str, *, key: UUID) -> None:
        """Now, and paid now. Raises PaymentFailed when the card refuses; then nothing has changed."""
        ...

    async def downgrade(self, subscription: SubscriptionSnapshot, price_id: str, *, key: UUID) -> None:
        """From the period's end on."""
        ...

    async def release(self, schedule_id: str) -> None:
        """What was planned by it does not come."""
        ...

    async def end_with_period(self, subscription_id: str, *, ends: bool, key: UUID) -> None: ...


class OfferStore(Protocol):
    async def plans(self) -> list[Plan]:
        """Those on offer, the smallest first."""
        ...

    async def packs(self) -> list[Pack]:
        """Those on offer, the smallest first."""
        ...

    async def price_id(self, offer: Offer) -> str | None:
        """Stripe's price of it, if it was published at that amount."""
        ...

    async def keep_price(self, offer: Offer, price_id: str) -> None: ...


class Orders(Protocol):
    """What somebody was sent to the till for."""

    async def replace_customer(self, account_id: AccountId, unknown_id: str, customer_id: str) -> str:
        """Where Stripe does not have the one that is known; Stripe's customer of the account from now on."""
        ...

    async def keep_customer(self, account_id: AccountId, customer_id: str) -> str:
        """Stripe's customer of the account: this one, or the one that was known before."""
        ...

    async def begin(self, order: Order) -> Checkout:
        """The order's own; or, when the account is at the till for a plan already, that one. May be
        repeated.
        """
        ...

    async def opened(self, checkout: Checkout, session: OpenSession) -> Checkout | None:
        """None: somebody closed it in the meantime."""
        ...

    async def close(self, checkout: Checkout, status: Literal["expired", "failed"]) -> None:
        """One that is completed stays so."""
        ...


class BillingQueries(Protocol):
    """What a caller may see. Raises AccountNotFound or AccountNotChosen."""

    async def standing(self, caller: Caller) -> SubscriptionStanding: ...

    async def checkout(self, caller: Caller, checkout_id: UUID) -> Checkout | None: ...

    async def invoices(self, caller: Caller, *, after: Cursor | None, invoices_max: int) -> list[Invoice]:
        """Newest first, from behind the place."""
        ...
