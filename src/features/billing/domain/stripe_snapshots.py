"""Snapshots of Stripe's objects."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from shared.ids import AccountId

StripeStatus = Literal[
    "incomplete", "incomplete_expired", "trialing", "active", "past_due", "canceled", "unpaid", "paused"
]
Surplus = Literal["ending", "ended"]
InvoiceStatus = Literal["draft", "open", "paid", "uncollectible", "void"]


class SubscriptionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    customer_id: str
    account_id: AccountId | None  # from the metadata
    item_id: str
    price_id: str
    status: StripeStatus
    anchor_at: datetime
    period_start: datetime
    period_end: datetime
    is_paid: bool  # refers to the latest invoice
    latest_invoice_id: str | None = None
    next_price_id: str | None = None  # scheduled for the end of the period
    schedule_id: str | None = None
    cancels_at: datetime | None = None
    surplus: Surplus | None = None  # set when it is cancelled because the account has another one

    @property
    def is_about_to_change(self) -> bool:
        """Whether a cancellation or a downgrade is planned for the end of the period."""
        return self.cancels_at is not None or self.next_price_id is not None


class InvoiceSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    customer_id: str
    subscription_id: str | None
    number: str | None
    status: InvoiceStatus
    billing_reason: str | None
    due_cents: int
    paid_cents: int
    currency: str
    created_at: datetime
    # From the line that bills the subscription's period; for an upgrade, the larger plan's line.
    price_id: str | None = None
    period_start: datetime | None = None
    period_end: datetime | None = None
    payment_id: str | None = None  # the payment intent
    hosted_url: str | None = None
    pdf_url: str | None = None
    paid_at: datetime | None = None


class CheckoutSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    customer_id: str | None
    mode: Literal["payment", "subscription"]
    status: Literal["open", "complete", "expired"]
    is_paid: bool
    account_id: AccountId | None
    checkout_id: UUID | None  # our own id, from the metadata
    credits: int  # from the metadata, set when the session was opened; 0 for a plan
    paid_cents: int
    currency: str
    payment_id: str | None = None
    subscription_id: str | None = None


class ReversalSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A refund or a dispute."""

    id: str  # re_... or dp_...
    payment_id: str | None
    returned_cents: int
    status: str  # Stripe's status
    is_surplus: bool = False  # refund of a duplicate subscription, which granted no credits
