"""Payments of an invoice."""

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.http.request import StripeRequest, whole_list

INVOICE_PAYMENTS = "/v1/invoice_payments"


def payments_of(invoice: Document) -> Document:
    """Returned only on expansion: an invoice does not contain its payments."""
    url = f"{INVOICE_PAYMENTS}?invoice={invoice['id']}"
    intent = invoice["_payment_intent"]
    if intent is None:
        return whole_list([], url)
    is_paid = invoice["status"] == "paid"
    payment: Document = {
        "id": f"inpay_{invoice['id'][3:]}",
        "object": "invoice_payment",
        "amount_paid": invoice["amount_paid"] if is_paid else None,
        "amount_requested": invoice["amount_due"],
        "created": invoice["created"],
        "currency": invoice["currency"],
        "invoice": invoice["id"],
        "is_default": True,
        "livemode": False,
        "payment": {"type": "payment_intent", "payment_intent": intent},
        "status": "paid" if is_paid else "open",
        "status_transitions": {"paid_at": invoice["status_transitions"]["paid_at"], "canceled_at": None},
    }
    return whole_list([payment], url)


def index(call: StripeRequest) -> Document:
    intent = call.form.part("payment").text("payment_intent")
    if (invoice_id := call.form.text("invoice")) is not None:
        return payments_of(call.store.get(invoice_id, "invoice"))
    if intent is None:
        raise RequestRejected(400, "parameter_missing", "Of which invoice or payment?", param="invoice")
    found = call.store.some("invoice", "json_extract(document, '$._payment_intent') = ?", (intent,))
    return payments_of(found[0]) if found else whole_list([], INVOICE_PAYMENTS)
