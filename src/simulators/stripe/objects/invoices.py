"""Invoices, from draft to paid."""

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.events.events import emit
from simulators.stripe.http.request import StripeRequest, listed, whole_list
from simulators.stripe.objects import payments
from simulators.stripe.store import Store, new_id

INVOICES = "/v1/invoices"
DRAFT_S = 3_600  # as long as Stripe keeps the draft of a renewal's invoice editable
RETRY_DAYS = (3, 5, 7)


def new_invoice(
    store: Store,
    subscription: Document,
    lines: list[Document],
    reason: str,
    past_period: tuple[int, int] | None = None,
) -> Document:
    """Returns an invoice that is not stored; a preview never is. Its own period is the past one, if there is
    one; the period billed in advance is in the lines.
    """
    customer = store.find(subscription["customer"]) or {}
    balance, total = customer.get("balance", 0), sum(line["amount"] for line in lines)
    details = {"metadata": subscription["metadata"], "subscription": subscription["id"]}
    return {
        **_draft(store, customer, subscription["currency"], lines, past_period),
        "amount_due": max(total + balance, 0),
        "amount_remaining": max(total + balance, 0),
        "billing_reason": reason,
        "customer": subscription["customer"],
        "ending_balance": min(total + balance, 0),
        "parent": {"type": "subscription_details", "quote_details": None, "subscription_details": details},
    }


def issue_paid(store: Store, sale: Document, lines: list[Document], intent: Document) -> Document:
    """Creates a paid invoice for a checkout payment; the customer's balance is not used."""
    customer = store.get(sale["customer"], "customer")
    invoice = _draft(store, customer, sale["currency"], lines, None) | {
        "_payment_intent": intent["id"],
        "_charge": intent["latest_charge"],
    }
    emit(store, "invoice.created", store.put(invoice))
    finalize(store, invoice)
    mark_paid(store, invoice)
    return invoice


def _draft(
    store: Store,
    customer: Document,
    currency: str,
    lines: list[Document],
    past_period: tuple[int, int] | None,
) -> Document:
    now, balance = store.now(), customer.get("balance", 0)
    total = sum(line["amount"] for line in lines)
    object_id = new_id("in")
    start, end = past_period or (now, now)
    return {
        "id": object_id,
        "object": "invoice",
        "amount_due": total,
        "amount_overpaid": 0,
        "amount_paid": 0,
        "amount_remaining": total,
        "attempt_count": 0,
        "attempted": False,
        "auto_advance": True,
        "billing_reason": "manual",
        "collection_method": "charge_automatically",
        "created": now,
        "currency": currency,
        "customer": customer.get("id"),
        "customer_email": customer.get("email"),
        "customer_name": customer.get("name"),
        "default_payment_method": None,
        "description": None,
        "due_date": None,
        "ending_balance": balance,
        "hosted_invoice_url": None,
        "invoice_pdf": None,
        "lines": whole_list(
            [{**line, "invoice": object_id} for line in lines], f"{INVOICES}/{object_id}/lines"
        ),
        "livemode": False,
        "metadata": {},
        "next_payment_attempt": None,
        "number": None,
        "parent": None,
        "period_start": start,
        "period_end": end,
        "starting_balance": balance,
        "status": "draft",
        "status_transitions": dict.fromkeys(
            ("finalized_at", "marked_uncollectible_at", "paid_at", "voided_at")
        ),
        "subtotal": total,
        "total": total,
        "total_taxes": [],
        "_payment_intent": None,
        "_charge": None,
    }


def subscription_of(store: Store, invoice: Document) -> Document:
    return store.get(invoice["parent"]["subscription_details"]["subscription"], "subscription")


def finalize(store: Store, invoice: Document) -> Document:
    customer = store.get(invoice["customer"], "customer")
    customer["_invoices"] += 1
    customer["balance"] = invoice["ending_balance"]
    store.put(customer)
    invoice |= {
        "status": "open",
        "number": f"{customer['invoice_prefix']}-{customer['_invoices']:04}",
        "hosted_invoice_url": f"{store.address}/invoice/{invoice['id']}",
        "_due": None,
    }
    invoice["status_transitions"]["finalized_at"] = store.now()
    emit(store, "invoice.finalized", store.put(invoice))
    return invoice


def collect(store: Store, invoice: Document) -> bool:
    """Charges the card and returns whether it succeeded. The caller updates the subscription."""
    if invoice["amount_due"] == 0:
        mark_paid(store, invoice)
        return True
    intent = _intent(store, invoice)
    invoice |= {"attempt_count": invoice["attempt_count"] + 1, "attempted": True}
    if payments.is_declined(store, invoice["customer"]):
        payments.fail(store, intent)
        _wait_for_another_try(store, invoice)
        return False
    intent = payments.succeed(store, intent)
    invoice["_charge"] = intent["latest_charge"]
    mark_paid(store, invoice)
    return True


def _intent(store: Store, invoice: Document) -> Document:
    if invoice["_payment_intent"]:
        return store.get(invoice["_payment_intent"], "payment_intent")
    cents, currency = invoice["amount_due"], invoice["currency"]
    intent = payments.new_intent(
        store, cents, currency, invoice["customer"], invoice=invoice["id"], metadata={}
    )
    invoice["_payment_intent"] = intent["id"]
    return intent


def _wait_for_another_try(store: Store, invoice: Document) -> None:
    tries: int = invoice["attempt_count"]
    days = RETRY_DAYS[tries - 1] if tries <= len(RETRY_DAYS) else None
    # Stripe does not retry a first invoice, because its subscription never became active.
    is_first = invoice["billing_reason"] == "subscription_create"
    again_at = None if days is None or is_first else store.now() + days * 86_400
    invoice |= {"next_payment_attempt": again_at, "_due": again_at}
    emit(store, "invoice.payment_failed", store.put(invoice))


def mark_paid(store: Store, invoice: Document) -> None:
    invoice |= {
        "status": "paid",
        "amount_paid": invoice["amount_due"],
        "amount_remaining": 0,
        "attempted": True,
        "next_payment_attempt": None,
        "_due": None,
    }
    invoice["status_transitions"]["paid_at"] = store.now()
    store.put(invoice)
    for kind in ("invoice.updated", "invoice.paid", "invoice.payment_succeeded"):
        emit(store, kind, invoice)


def end(store: Store, invoice: Document, status: str) -> Document:
    """Marks the invoice void or uncollectible, so that it is never paid."""
    if invoice["status"] not in {"open", "uncollectible", "draft"}:
        raise RequestRejected(
            400, "invoice_not_editable", f"An invoice that is {invoice['status']} stays so."
        )
    moment = "voided_at" if status == "void" else "marked_uncollectible_at"
    invoice["status_transitions"][moment] = store.now()
    invoice |= {"status": status, "next_payment_attempt": None, "auto_advance": False, "_due": None}
    emit(store, "invoice.voided" if status == "void" else "invoice.marked_uncollectible", store.put(invoice))
    return invoice


def retrieve(call: StripeRequest) -> Document:
    return call.store.get(call.id, "invoice")


def index(call: StripeRequest) -> Document:
    subscription, equal = call.form.text("subscription"), ("customer", "status", "billing_reason")
    if subscription is None:
        return listed(call, "invoice", INVOICES, equal=equal)
    call.store.get(subscription, "subscription", param="subscription")
    where = "json_extract(document, '$.parent.subscription_details.subscription') = ?"
    return listed(call, "invoice", INVOICES, equal=equal, where=where, given=(subscription,))


def void(call: StripeRequest) -> Document:
    return end(call.store, call.store.get(call.id, "invoice"), "void")


def mark_uncollectible(call: StripeRequest) -> Document:
    return end(call.store, call.store.get(call.id, "invoice"), "uncollectible")
