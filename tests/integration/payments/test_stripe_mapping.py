"""Mapping of Stripe's objects in every supported API version."""

import uuid
from datetime import UTC, datetime

import pytest

from features.billing.domain.errors import StripeShapeUnknown
from infrastructure.payments.stripe_mapping import (
    checkout_of,
    dispute_of,
    invoice_of,
    refund_of,
    subscription_of,
)

ACCOUNT = "7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11"
START, END = 1_793_525_400, 1_796_117_400
PERIOD = {"current_period_start": START, "current_period_end": END}
PAID_LINES = {"data": [{"amount": 2900, "price": {"id": "price_1"}}]}

SUBSCRIPTION = {
    "id": "sub_1",
    "customer": "cus_1",
    "metadata": {"account_id": ACCOUNT},
    "status": "active",
    "billing_cycle_anchor": START,
    "latest_invoice": {"id": "in_1", "status": "paid", "lines": PAID_LINES},
    "schedule": None,
    "cancel_at": None,
    "cancel_at_period_end": False,
}
NEW = {**SUBSCRIPTION, "items": {"data": [{"id": "si_1", "price": {"id": "price_1"}, **PERIOD}]}}
OLD = {**SUBSCRIPTION, **PERIOD, "items": {"data": [{"id": "si_1", "price": {"id": "price_1"}}]}}
OLDEST = {
    **SUBSCRIPTION,
    **PERIOD,
    "plan": {"id": "price_1"},
    "items": {"data": [{"id": "si_1", "plan": {"id": "price_1"}}]},
    "latest_invoice": {"id": "in_1", "paid": True},
}

INVOICE = {
    "id": "in_1",
    "customer": {"id": "cus_1", "email": "x@example.com"},
    "number": "A-1",
    "billing_reason": "subscription_cycle",
    "amount_due": 2900,
    "currency": "usd",
    "created": START,
    "hosted_invoice_url": "https://stripe.example/i",
    "invoice_pdf": "https://stripe.example/i.pdf",
}
LINE_PERIOD = {"start": START, "end": END}
NEW_INVOICE = {
    **INVOICE,
    "status": "paid",
    "amount_paid": 2900,
    "status_transitions": {"paid_at": START},
    "parent": {"subscription_details": {"subscription": "sub_1"}},
    "payments": {
        "data": [
            {"status": "canceled", "payment": {"payment_intent": "pi_0"}},
            {"status": "paid", "payment": {"payment_intent": {"id": "pi_1"}}},
        ]
    },
    "lines": {
        "data": [
            {
                "amount": 2900,
                "period": LINE_PERIOD,
                "pricing": {"price_details": {"price": "price_1"}},
                "parent": {"subscription_item_details": {"proration": False}},
            }
        ]
    },
}
OLD_INVOICE = {
    **INVOICE,
    "status": "paid",
    "paid": True,
    "amount_paid": 2900,
    "status_transitions": {"paid_at": START},
    "subscription": "sub_1",
    "payment_intent": "pi_1",
    "charge": "ch_1",
    "lines": {"data": [{"amount": 2900, "period": LINE_PERIOD, "price": {"id": "price_1"}}]},
}
OLDEST_INVOICE = {
    **{name: value for name, value in INVOICE.items() if name != "created"},
    "date": START,
    "paid": True,
    "subscription": {"id": "sub_1"},
    "charge": {"id": "pi_1"},
    "lines": {"data": [{"amount": 2900, "period": LINE_PERIOD, "plan": {"id": "price_1"}}]},
}


def without(document, name):
    return {key: value for key, value in document.items() if key != name}


@pytest.mark.parametrize("document", [OLD, OLDEST])
def test_subscription_maps_equally_from_every_api_version(document):
    snapshot = subscription_of(NEW)

    assert subscription_of(document) == snapshot
    assert snapshot.account_id == uuid.UUID(ACCOUNT)
    assert snapshot.period_end == datetime.fromtimestamp(END, UTC)
    assert (snapshot.price_id, snapshot.is_paid, snapshot.cancels_at) == ("price_1", True, None)


@pytest.mark.parametrize("document", [OLD_INVOICE, OLDEST_INVOICE])
def test_invoice_maps_equally_from_every_api_version(document):
    snapshot = invoice_of(NEW_INVOICE)

    assert invoice_of(document) == snapshot
    assert (snapshot.subscription_id, snapshot.payment_id, snapshot.price_id) == ("sub_1", "pi_1", "price_1")
    assert (snapshot.status, snapshot.paid_cents) == ("paid", 2900)
    assert snapshot.period_start == datetime.fromtimestamp(START, UTC)


@pytest.mark.parametrize(
    ("invoice", "is_paid"),
    [
        ("in_1", False),  # an id does not contain the status
        (None, False),
        ({"id": "in_1", "status": "open"}, False),
        ({"id": "in_1", "status": "draft"}, False),
        ({"id": "in_1", "status": "paid"}, True),
        ({"id": "in_1", "status": "paid", "lines": {"data": []}}, True),
        ({"id": "in_1", "status": "paid", "lines": {"data": [{"price": {"id": "price_old"}}]}}, False),
        ({"id": "in_1", "paid": False}, False),
    ],
)
def test_period_is_paid_if_its_paid_invoice_bills_the_price(invoice, is_paid):
    assert subscription_of({**NEW, "latest_invoice": invoice}).is_paid == is_paid


@pytest.mark.parametrize(
    ("fields", "cancels_at"),
    [
        ({"cancel_at_period_end": True}, END),
        ({"cancel_at": END - 60}, END - 60),
        ({"cancel_at_period_end": True, "cancel_at": END}, END),
    ],
)
def test_cancellation_maps_to_its_time(fields, cancels_at):
    assert subscription_of({**NEW, **fields}).cancels_at == datetime.fromtimestamp(cancels_at, UTC)


@pytest.mark.parametrize(
    ("schedule", "next_price_id"),
    [
        ({"status": "active"}, "price_2"),
        ({"status": "not_started"}, "price_2"),
        ({"status": "released"}, None),
    ],
)
def test_next_price_is_read_from_the_open_schedule(schedule, next_price_id):
    phases = [
        {"start_date": START, "items": [{"price": "price_1"}]},
        {"start_date": END, "items": [{"price": "price_2"}]},
    ]
    snapshot = subscription_of({**NEW, "schedule": {"id": "sub_sched_1", **schedule, "phases": phases}})

    assert (snapshot.schedule_id, snapshot.next_price_id) == ("sub_sched_1", next_price_id)


def test_upgrade_invoice_has_the_larger_plans_price_and_no_period():
    lines = [
        {"amount": -1400, "period": LINE_PERIOD, "price": {"id": "price_1"}, "proration": True},
        {"amount": 4900, "period": LINE_PERIOD, "price": {"id": "price_2"}, "proration": True},
    ]
    snapshot = invoice_of({**OLD_INVOICE, "lines": {"data": lines}})

    assert (snapshot.price_id, snapshot.period_start, snapshot.period_end) == ("price_2", None, None)


@pytest.mark.parametrize(
    ("read", "document", "field"),
    [
        (subscription_of, without(OLD, "current_period_start"), "current_period_start"),
        (subscription_of, {**NEW, "items": {"data": []}}, "current_period_start"),
        (subscription_of, {**OLD, "current_period_end": None}, "current_period_end"),
        (subscription_of, {**OLD, "current_period_end": "soon"}, "current_period_end"),
        (subscription_of, {**OLD, "items": {"data": [{"id": "si_1"}]}}, "price"),
        (subscription_of, without(NEW, "customer"), "customer"),
        (subscription_of, {**NEW, "status": None}, "status"),
        (invoice_of, {**INVOICE}, "status"),
        (invoice_of, {**NEW_INVOICE, "amount_due": None}, "amount_due"),
        (invoice_of, {**NEW_INVOICE, "created": None}, "created"),
        (checkout_of, {"id": "cs_1", "mode": "setup", "status": "open"}, "mode"),
        (checkout_of, {"id": "cs_1", "mode": "payment", "status": "odd"}, "status"),
        (
            checkout_of,
            {"id": "cs_1", "mode": "payment", "status": "open", "metadata": {"credits": "-5"}},
            "metadata.credits",
        ),
        (refund_of, {"id": "re_1"}, "amount"),
        (dispute_of, {"amount": 5}, "id"),
    ],
)
def test_missing_required_field_raises_shape_unknown(read, document, field):
    with pytest.raises(StripeShapeUnknown) as refusal:
        read(document)

    assert refusal.value.field == field


def test_checkout_maps_account_and_credits_from_its_metadata():
    checkout_id = uuid.uuid4()
    snapshot = checkout_of(
        {
            "id": "cs_1",
            "mode": "payment",
            "status": "complete",
            "payment_status": "paid",
            "customer": "cus_1",
            "amount_total": 1500,
            "currency": "usd",
            "payment_intent": "pi_1",
            "metadata": {"account_id": ACCOUNT, "checkout_id": str(checkout_id), "credits": "100"},
        }
    )

    assert (snapshot.account_id, snapshot.checkout_id) == (uuid.UUID(ACCOUNT), checkout_id)
    assert (snapshot.credits, snapshot.is_paid, snapshot.paid_cents) == (100, True, 1500)


@pytest.mark.parametrize("account_id", ["not-a-uuid", "", None, 5])
def test_invalid_account_id_maps_to_none(account_id):
    assert subscription_of({**NEW, "metadata": {"account_id": account_id}}).account_id is None


@pytest.mark.parametrize("paid_by", [{"payment_intent": "pi_1"}, {"payment_intent": None, "charge": "pi_1"}])
def test_refund_maps_its_payment(paid_by):
    snapshot = refund_of({"id": "re_1", "amount": 500, "status": "pending", **paid_by})

    assert (snapshot.payment_id, snapshot.returned_cents, snapshot.status) == ("pi_1", 500, "pending")
