"""Builders of Stripe snapshots for tests."""

import uuid
from datetime import UTC, datetime, timedelta

import msgspec

from features.billing.domain.stripe_snapshots import CheckoutSnapshot, InvoiceSnapshot, SubscriptionSnapshot

STARTED_AT = datetime.now(UTC).replace(microsecond=0) - timedelta(days=3)


def subscription(price_id, **fields):
    return SubscriptionSnapshot(
        **{
            "id": f"sub_{uuid.uuid4().hex}",
            "customer_id": "cus_1",
            "account_id": None,
            "item_id": "si_1",
            "price_id": price_id,
            "status": "active",
            "anchor_at": STARTED_AT,
            "period_start": STARTED_AT,
            "period_end": STARTED_AT + timedelta(days=30),
            "is_paid": True,
            **fields,
        }
    )


def invoice(**fields):
    return InvoiceSnapshot(
        **{
            "id": f"in_{uuid.uuid4().hex}",
            "customer_id": "cus_1",
            "subscription_id": None,
            "number": None,
            "status": "open",
            "billing_reason": "subscription_cycle",
            "due_cents": 2900,
            "paid_cents": 0,
            "currency": "usd",
            "created_at": STARTED_AT,
            **fields,
        }
    )


def checkout(account_id, **fields):
    return CheckoutSnapshot(
        **{
            "id": f"cs_{uuid.uuid4().hex}",
            "customer_id": "cus_1",
            "mode": "payment",
            "status": "complete",
            "is_paid": True,
            "account_id": account_id,
            "checkout_id": None,
            "credits": 100,
            "paid_cents": 1500,
            "currency": "usd",
            "payment_id": f"pi_{uuid.uuid4().hex}",
            **fields,
        }
    )


def changed(snapshot, **fields):
    return msgspec.structs.replace(snapshot, **fields)
