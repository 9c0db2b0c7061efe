"""Ports of billing to Stripe and to the database."""

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
from features.billing.domain.subscriptions import AccountBilling, Checkout, Invoice, OpenSession, Order
from shared.caller import Caller
from shared.ids import AccountId
from shared.pagination import Cursor


class RawEvent(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    type: str
    created_at: datetime
    payload: bytes


class StripeReader(Protocol):
    """Current state at Stripe. Returns None for an unknown id; raises Unavailable if Stripe fails."""

    async def subscription(self, subscription_id: str) -> SubscriptionSnapshot | None: ...

    async def invoice(self, invoice_id: str) -> InvoiceSnapshot | None: ...

    async def checkout(self, session_id: str) -> CheckoutSnapshot | None: ...

    async def refunds_of(self, charge_id: str) -> list[ReversalSnapshot]: ...

    async def dispute(self, dispute_id: str) -> ReversalSnapshot | None: ...

    def subscriptions(self) -> AsyncIterator[SubscriptionSnapshot]:
        """All subscriptions including ended ones, fetched page by page."""
        ...

    def invoices(self, *, since: datetime) -> AsyncIterator[InvoiceSnapshot]: ...

    def invoices_of(self, subscription_id: str) -> AsyncIterator[InvoiceSnapshot]: ...

    def events(self, *, since: datetime, until: datetime) -> AsyncIterator[RawEvent]:
        """Events, newest first. Stripe keeps them for 30 days."""
        ...


class SubscriptionStore(Protocol):
    """Repository of Stripe's subscriptions. Every method is idempotent."""

    async def now(self) -> datetime:
        """The database's time. Read it before the request to Stripe and pass it with the snapshot."""
        ...

    async def apply_subscription(
        self, account_id: AccountId, snapshot: SubscriptionSnapshot, seen_at: datetime
    ) -> SubscriptionResult:
        """Store the snapshot; one older than the stored state changes nothing. Raises PriceUnknown."""
        ...


class SubscriptionLocks(Protocol):
    def hold(self, account_id: AccountId) -> AbstractAsyncContextManager[None]:
        """Hold an account's lock across all processes; other callers wait.
        Raises SubscriptionBusy when the wait is too long.
        """
        ...


class CheckoutProvider(Protocol):
    """Stripe's prices, customers, checkout sessions and portal. Every call is idempotent. Raises
    PaymentsUnavailable, PaymentsRefused, or BillingNotConfigured without a Stripe key.
    """

    async def publish(self, offer: Offer) -> str:
        """Return the id of the offer's price at Stripe; create the price if there is none."""
        ...

    async def open_customer(self, account_id: AccountId, *, email: str) -> str: ...

    async def open_checkout(self, checkout: Checkout, *, customer_id: str, price_id: str) -> OpenSession: ...

    async def expire_checkout(self, session_id: str) -> None:
        """Make the session unpayable. Raises CheckoutCompleted if it is already paid."""
        ...

    async def open_portal(self, customer_id: str, *, return_url: str, key: UUID) -> str:
        """Return the URL of Stripe's customer portal for cards, invoices and addresses."""
        ...


class SubscriptionProvider(Protocol):
    """Changes of a subscription at Stripe, idempotent by ``key``. Writes return nothing: read the result
    with StripeReader.
    """

    async def due_now_cents(self, customer_id: str, change: PlanChange, price_id: str) -> int:
        """Price of the upgrade if it is made at ``change.at``."""
        ...

    async def upgrade(self, change: PlanChange, price_id: str, *, key: UUID) -> None:
        """Upgrade and charge now. Raises PaymentFailed, without any change, if the card is declined."""
        ...

    async def downgrade(self, subscription: SubscriptionSnapshot, price_id: str, *, key: UUID) -> None:
        """Schedule the smaller plan for the end of the period."""
        ...

    async def release(self, schedule_id: str) -> None:
        """Drop the schedule and its planned change; the subscription itself continues."""
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
        """Id of the offer's price at Stripe; None if it was not published with this amount."""
        ...

    async def store_price(self, offer: Offer, price_id: str) -> None: ...


class Orders(Protocol):
    """Repository of checkouts and of the accounts' Stripe customers."""

    async def replace_customer(self, account_id: AccountId, unknown_id: str, customer_id: str) -> str:
        """Replace a customer id that Stripe does not know; return the id that is stored afterwards."""
        ...

    async def store_customer(self, account_id: AccountId, customer_id: str) -> str:
        """Store the customer id unless the account has one; return the stored id."""
        ...

    async def begin(self, order: Order) -> Checkout:
        """Create the order's checkout, or return the account's open checkout for a plan. Idempotent by
        ``order.id``.
        """
        ...

    async def opened(self, checkout: Checkout, session: OpenSession) -> Checkout | None:
        """Store the Stripe session. Returns None if the checkout was closed concurrently."""
        ...

    async def close(self, checkout: Checkout, status: Literal["expired", "failed"]) -> None:
        """Close the checkout; a completed one stays completed."""
        ...


class BillingQueries(Protocol):
    """Reads with the caller's rights. Raises AccountNotFound or AccountNotChosen."""

    async def billing(self, caller: Caller) -> AccountBilling: ...

    async def checkout(self, caller: Caller, checkout_id: UUID) -> Checkout | None: ...

    async def invoices(self, caller: Caller, *, after: Cursor | None, invoices_max: int) -> list[Invoice]:
        """Invoices after the cursor, newest first."""
        ...
