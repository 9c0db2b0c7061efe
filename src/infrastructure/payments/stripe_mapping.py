"""Mapping of Stripe's JSON objects to snapshots.

In 2025 Stripe moved the period from the subscription to its items, and much of the invoice below
``parent``, ``pricing`` and ``payments``. Events have the API version of their webhook endpoint, so both
forms are supported; where it is simple, also the older form with ``plan`` instead of ``price``.
"""

from datetime import datetime
from typing import cast

from features.billing.domain.errors import StripeShapeUnknown
from features.billing.domain.stripe_snapshots import (
    CheckoutSnapshot,
    InvoiceSnapshot,
    InvoiceStatus,
    ReversalSnapshot,
    StripeStatus,
    SubscriptionSnapshot,
    Surplus,
)
from infrastructure.payments.json_fields import (
    Json,
    identifier,
    instant,
    listed,
    number,
    part,
    required,
    text,
    uuid_of,
)
from shared.ids import AccountId

SURPLUS = "surplus"  # metadata key of a subscription that is cancelled because the account has another
SCHEDULE_OPEN = ("active", "not_started")


def subscription_of(document: Json) -> SubscriptionSnapshot:
    """``is_paid`` requires the latest invoice expanded, because an id does not contain its status."""
    kind = "subscription"
    items = listed(document, "items")
    item = items[0] if items else {}
    starts_at, ends_at = (
        required(instant(document.get(name)) or instant(item.get(name)), kind, name)
        for name in ("current_period_start", "current_period_end")
    )
    price_id = required(_price_of(item) or _price_of(document), kind, "price")
    cancels_at = instant(document.get("cancel_at"))
    return SubscriptionSnapshot(
        id=required(text(document.get("id")), kind, "id"),
        customer_id=required(identifier(document.get("customer")), kind, "customer"),
        account_id=_account_of(document),
        item_id=required(text(item.get("id")), kind, "items"),
        price_id=price_id,
        status=cast("StripeStatus", required(text(document.get("status")), kind, "status")),
        anchor_at=instant(document.get("billing_cycle_anchor")) or starts_at,
        period_start=starts_at,
        period_end=ends_at,
        is_paid=_pays_for(part(document, "latest_invoice"), price_id),
        latest_invoice_id=identifier(document.get("latest_invoice")),
        next_price_id=_next_price(part(document, "schedule"), ends_at),
        schedule_id=identifier(document.get("schedule")),
        cancels_at=cancels_at or (ends_at if document.get("cancel_at_period_end") is True else None),
        surplus=_surplus_of(document),
    )


def invoice_of(document: Json) -> InvoiceSnapshot:
    kind = "invoice"
    status = _invoice_status(document)
    line = _billed_line(document)
    # A proration's period begins with the change, so it differs from the subscription's period.
    period = {} if line is None or _is_proration(line) else part(line, "period")
    created_at = required(instant(document.get("created") or document.get("date")), kind, "created")
    due_cents = required(number(document.get("amount_due")), kind, "amount_due")
    paid_at = instant(part(document, "status_transitions").get("paid_at"))
    paid_cents = number(document.get("amount_paid"))
    return InvoiceSnapshot(
        id=required(text(document.get("id")), kind, "id"),
        customer_id=required(identifier(document.get("customer")), kind, "customer"),
        subscription_id=_subscription_of_invoice(document),
        number=text(document.get("number")),
        status=status,
        billing_reason=text(document.get("billing_reason")),
        due_cents=due_cents,
        paid_cents=paid_cents if paid_cents is not None else (due_cents if status == "paid" else 0),
        currency=required(text(document.get("currency")), kind, "currency"),
        created_at=created_at,
        price_id=None if line is None else _price_of(line),
        period_start=instant(period.get("start")),
        period_end=instant(period.get("end")),
        payment_id=_payment_of_invoice(document),
        hosted_url=text(document.get("hosted_invoice_url")),
        pdf_url=text(document.get("invoice_pdf")),
        paid_at=(paid_at or created_at) if status == "paid" else None,
    )


def checkout_of(document: Json) -> CheckoutSnapshot:
    kind = "checkout session"
    mode, status = document.get("mode"), document.get("status")
    if mode not in ("payment", "subscription"):
        raise StripeShapeUnknown(kind=kind, field="mode")
    if status not in ("open", "complete", "expired"):
        raise StripeShapeUnknown(kind=kind, field="status")
    metadata = part(document, "metadata")
    credits_promised = metadata.get("credits", "0")
    if not isinstance(credits_promised, str) or not credits_promised.isdecimal():
        raise StripeShapeUnknown(kind=kind, field="metadata.credits")
    return CheckoutSnapshot(
        id=required(text(document.get("id")), kind, "id"),
        customer_id=identifier(document.get("customer")),
        mode=mode,
        status=status,
        is_paid=document.get("payment_status") in ("paid", "no_payment_required"),
        account_id=_account_of(document),
        checkout_id=uuid_of(metadata.get("checkout_id")),
        credits=int(credits_promised),
        paid_cents=number(document.get("amount_total")) or 0,
        currency=text(document.get("currency")) or "usd",
        payment_id=identifier(document.get("payment_intent")),
        subscription_id=identifier(document.get("subscription")),
    )


def refund_of(document: Json) -> ReversalSnapshot:
    return _return_of(document, "refund")


def dispute_of(document: Json) -> ReversalSnapshot:
    return _return_of(document, "dispute")


def _return_of(document: Json, kind: str) -> ReversalSnapshot:
    return ReversalSnapshot(
        id=required(text(document.get("id")), kind, "id"),
        payment_id=identifier(document.get("payment_intent")) or identifier(document.get("charge")),
        returned_cents=required(number(document.get("amount")), kind, "amount"),
        status=text(document.get("status")) or "succeeded",
        is_surplus=SURPLUS in part(document, "metadata"),
    )


def _surplus_of(document: Json) -> Surplus | None:
    word = part(document, "metadata").get(SURPLUS)
    return word if word in ("ending", "ended") else None


def _account_of(document: Json) -> AccountId | None:
    found = uuid_of(part(document, "metadata").get("account_id"))
    return None if found is None else AccountId(found)


def _price_of(document: Json) -> str | None:
    """Price id of a subscription item or an invoice line."""
    return (
        identifier(part(document, "pricing", "price_details").get("price"))
        or identifier(document.get("price"))
        or identifier(document.get("plan"))
    )


def _pays_for(invoice: Json, price_id: str) -> bool:
    """Whether the invoice is paid and bills this price. An invoice for another price is from before a plan
    change that was made without an invoice.
    """
    prices = {_price_of(line) for line in listed(invoice, "lines")} - {None}
    return bool(invoice) and _invoice_status(invoice) == "paid" and (not prices or price_id in prices)


def _next_price(schedule: Json, period_end: datetime) -> str | None:
    if schedule.get("status") not in SCHEDULE_OPEN:
        return None
    phases = cast("list[Json]", schedule.get("phases") or [])
    for phase in phases:
        starts_at = instant(phase.get("start_date"))
        items = cast("list[Json]", phase.get("items") or [])
        if starts_at is not None and starts_at >= period_end and items:
            return _price_of(items[0])
    return None


def _invoice_status(invoice: Json) -> InvoiceStatus:
    status = invoice.get("status")
    if status in ("draft", "open", "paid", "uncollectible", "void"):
        return status
    if isinstance(invoice.get("paid"), bool):
        return "paid" if invoice["paid"] else "open"
    raise StripeShapeUnknown(kind="invoice", field="status")


def _subscription_of_invoice(invoice: Json) -> str | None:
    details = part(invoice, "parent", "subscription_details")
    return identifier(details.get("subscription")) or identifier(invoice.get("subscription"))


def _billed_line(invoice: Json) -> Json | None:
    """The line with the largest amount; for an upgrade this is the larger plan's line."""
    lines = [line for line in listed(invoice, "lines") if _price_of(line) is not None]
    return max(lines, key=lambda line: number(line.get("amount")) or 0, default=None)


def _is_proration(line: Json) -> bool:
    item, invoice_item = (
        part(line, "parent", name) for name in ("subscription_item_details", "invoice_item_details")
    )
    return any(holder.get("proration") is True for holder in (line, item, invoice_item))


def _payment_of_invoice(invoice: Json) -> str | None:
    """The payment intent, or the charge in API versions without payment intents."""
    own = identifier(invoice.get("payment_intent")) or identifier(invoice.get("charge"))
    payments = listed(invoice, "payments")
    payments.sort(key=lambda payment: payment.get("status") != "paid")
    found = [
        identifier(part(payment, "payment").get("payment_intent"))
        or identifier(part(payment, "payment").get("charge"))
        for payment in payments
    ]
    return own or next((payment_id for payment_id in found if payment_id), None)
