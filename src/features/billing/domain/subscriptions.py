"""Subscriptions, orders, checkouts and invoices of an account."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from features.billing.domain.errors import AlreadySubscribed, NoSubscription
from features.billing.domain.stripe_snapshots import InvoiceStatus
from shared.ids import AccountId

CheckoutStatus = Literal["opening", "open", "completed", "expired", "failed"]


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    plan: str
    status: str
    clock: Literal["internal", "stripe"]  # decides when a period ends
    stripe_subscription_id: str | None
    stripe_item_id: str | None
    period_start: datetime
    period_end: datetime
    next_plan: str | None
    cancels_at: datetime | None
    monthly_credits: int
    credits_granted: int  # in this period
    price_cents: int
    currency: str

    @property
    def is_about_to_change(self) -> bool:
        """Whether a cancellation or a downgrade is planned for the end of the period."""
        return self.cancels_at is not None or self.next_plan is not None


class AccountBilling(msgspec.Struct, frozen=True, kw_only=True):
    """An account's plan, subscription and Stripe customer."""

    account_id: AccountId
    plan: str  # in force
    stripe_customer_id: str | None
    subscription: Subscription

    def check_unsubscribed(self) -> None:
        if self.subscription.clock == "stripe":
            raise AlreadySubscribed(plan=self.subscription.plan)

    def paid_subscription(self) -> Subscription:
        if self.subscription.clock != "stripe":
            raise NoSubscription
        return self.subscription


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A requested purchase and its return addresses."""

    id: UUID
    account_id: AccountId
    user_id: UUID
    plan: str | None
    pack: str | None
    credits: int
    price_cents: int
    currency: str
    success_url: str
    cancel_url: str


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    account_id: AccountId
    plan: str | None
    pack: str | None
    credits: int
    price_cents: int
    currency: str
    status: CheckoutStatus
    stripe_session_id: str | None
    url: str | None
    success_url: str
    cancel_url: str
    created_at: datetime
    expires_at: datetime | None
    completed_at: datetime | None

    def is_for(self, order: Order) -> bool:
        """Whether the checkout sells the order's item at the same price."""
        mine = (self.plan, self.pack, self.price_cents, self.currency)
        return mine == (order.plan, order.pack, order.price_cents, order.currency)


class OpenSession(msgspec.Struct, frozen=True, kw_only=True):
    """A payable Stripe checkout session."""

    id: str
    url: str
    expires_at: datetime


class Invoice(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    number: str | None
    status: InvoiceStatus
    billing_reason: str | None
    due_cents: int
    paid_cents: int
    refunded_cents: int
    currency: str
    period_start: datetime | None
    period_end: datetime | None
    hosted_url: str | None
    pdf_url: str | None
    created_at: datetime
    paid_at: datetime | None
