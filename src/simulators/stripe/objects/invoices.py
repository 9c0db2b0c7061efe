"""Invoices with their lines and payments, from draft to paid."""

from simulators.faults.provider_requests import Document
from simulators.stripe.events.events import emit
from simulators.stripe.http.requests import StripeRequest, paginate, whole_list
from simulators.stripe.objects import payments
from simulators.stripe.store import Store, new_id

DRAFT_S = 3_600  # as long as Stripe keeps the draft of a renewal's invoice editable


def period_line(subscription: Document, item: Document, start: int, end: int) -> Document:
    """Returns the line of a whole period, billed in advance."""
    price = item["price"]
    return _subscription_line(subscription, item, price, price["unit_amount"], (start, end))


def proration_lines(subscription: Document, item: Document, price: Document, at: int) -> list[Document]:
    """Returns two lines for the rest of the period: a credit at the old price and a charge at the new one."""
    start, end = item["current_period_start"], item["current_period_end"]
    share = (end - max(at, start)) / (end - start)
    old = item["price"]
    credit, charge = -round(old["unit_amount"] * share), round(price["unit_amount"] * share)
    return [
        _subscription_line(subscription, item, old, credit, (at, end), is_proration=True),
        _subscription_line(subscription, item, price, charge, (at, end), is_proration=True),
    ]


def _subscription_line(
    subscription: Document,
    item: Document,
    price: Document,
    cents: int,
    period: tuple[int, int],
    *,
    is_proration: bool = False,
) -> Document:
    details: Document = {
        "proration": is_proration,
        "subscription": subscription["id"],
        "subscription_item": item["id"],
    }
    description = (
        ("Unused time" if cents < 0 else "Remaining time") if is_proration else "A month of the plan"
    )
    parent = {"type": "subscription_item_details", "subscription_item_details": details}
    return {**_line(price, cents, period, description), "parent": parent}


def purchase_line(item: Document, now: int) -> Document:
    """Returns the line of a one-time purchase in a checkout session."""
    details: Document = {"proration": False, "subscription": None}
    parent = {"type": "invoice_item_details", "invoice_item_details": details}
    return {**_line(item["price"], item["amount"], (now, now), item["description"]), "parent": parent}


def _line(price: Document, cents: int, period: tuple[int, int], description: str) -> Document:
    return {
        "id": new_id("il"),
        "object": "line_item",
        "amount": cents,
        "currency": price["currency"],
        "description": description,
        "period": {"start": period[0], "end": period[1]},
        "pricing": {
            "type": "price_details",
            "price_details": {"price": price["id"], "product": price["product"]},
        },
    }


def new_invoice(
    store: Store, customer: str, lines: list[Document], reason: str, subscription: Document | None = None
) -> Document:
    """Returns a draft that is not stored; a preview never is."""
    cents = max(sum(line["amount"] for line in lines), 0)
    details = subscription and {"metadata": subscription["metadata"], "subscription": subscription["id"]}
    return {
        "id": new_id("in"),
        "object": "invoice",
        "amount_due": cents,
        "amount_paid": 0,
        "billing_reason": reason,
        "created": store.now(),
        "currency": lines[0]["currency"],
        "customer": customer,
        "hosted_invoice_url": None,
        "invoice_pdf": None,
        "lines": whole_list(lines),
        "number": None,
        "parent": details and {"type": "subscription_details", "subscription_details": details},
        "status": "draft",
        "status_transitions": {"finalized_at": None, "paid_at": None},
        "_payment_intent": None,
    }


def issue_paid(store: Store, session: Document, lines: list[Document], intent: Document) -> Document:
    """Creates a paid invoice for a checkout payment."""
    invoice = new_invoice(store, session["customer"], lines, "manual")
    invoice["_payment_intent"] = intent["id"]
    emit(store, "invoice.created", store.put(invoice))
    _mark_paid(store, finalize(store, invoice))
    return invoice


def subscription_of(store: Store, invoice: Document) -> Document:
    return store.get(invoice["parent"]["subscription_details"]["subscription"], "subscription")


def finalize(store: Store, invoice: Document) -> Document:
    customer = store.get(invoice["customer"], "customer")
    customer["_invoices"] += 1
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
    customer = invoice["customer"]
    if invoice["amount_due"] and payments.is_declined(store, customer):
        emit(store, "invoice.payment_failed", store.put(invoice))
        return False
    if invoice["amount_due"]:
        intent = payments.pay(store, invoice["amount_due"], invoice["currency"], customer, {})
        invoice["_payment_intent"] = intent["id"]
    _mark_paid(store, invoice)
    return True


def _mark_paid(store: Store, invoice: Document) -> None:
    invoice |= {"status": "paid", "amount_paid": invoice["amount_due"]}
    invoice["status_transitions"]["paid_at"] = store.now()
    store.put(invoice)
    for kind in ("invoice.updated", "invoice.paid", "invoice.payment_succeeded"):
        emit(store, kind, invoice)


def payments_of(invoice: Document) -> Document:
    """Returned only on expansion: an invoice does not contain its payments."""
    if invoice["_payment_intent"] is None:
        return whole_list([])
    payment = {"type": "payment_intent", "payment_intent": invoice["_payment_intent"]}
    return whole_list(
        [
            {
                "id": f"inpay_{invoice['id'][3:]}",
                "object": "invoice_payment",
                "amount_paid": invoice["amount_paid"],
                "invoice": invoice["id"],
                "payment": payment,
                "status": "paid",
            }
        ]
    )


def list_invoices(request: StripeRequest) -> Document:
    subscription = request.form.text("subscription")
    if subscription is None:
        return paginate(request, "invoice")
    request.store.get(subscription, "subscription", param="subscription")
    where = "json_extract(document, '$.parent.subscription_details.subscription') = ?"
    return paginate(request, "invoice", where=where, values=(subscription,))
