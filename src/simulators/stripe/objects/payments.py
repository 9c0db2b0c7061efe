"""Payments by card, refunds by the merchant and disputes by a bank."""

from simulators.faults.provider_requests import Document, RequestRejected
from simulators.stripe.events.events import emit
from simulators.stripe.http.requests import StripeRequest, paginate
from simulators.stripe.store import Store, new_id

DECLINED = "Your card was declined."
ALL_CUSTOMERS = "*"


def is_declined(store: Store, customer: str) -> bool:
    """Returns whether the card is declined, and counts the decline down; -1 means for ever."""
    declines = store.setting("declines", {})
    for name in (customer, ALL_CUSTOMERS):
        if times := declines.get(name, 0):
            store.set("declines", {**declines, name: max(times - 1, -1) if times > 0 else -1})
            return True
    return False


def card_declined() -> RequestRejected:
    return RequestRejected(402, "card_declined", DECLINED)


def pay(store: Store, cents: int, currency: str, customer: str, metadata: Document) -> Document:
    """Returns the payment intent of a card that paid."""
    intent_id, charge_id = new_id("pi"), new_id("ch")
    common: Document = {
        "amount": cents,
        "created": store.now(),
        "currency": currency,
        "customer": customer,
        "metadata": metadata,
        "status": "succeeded",
    }
    charge: Document = {
        "id": charge_id,
        "object": "charge",
        **common,
        "amount_refunded": 0,
        "disputed": False,
        "payment_intent": intent_id,
        "refunded": False,
    }
    intent: Document = {"id": intent_id, "object": "payment_intent", **common, "latest_charge": charge_id}
    emit(store, "charge.succeeded", store.put(charge))
    emit(store, "payment_intent.succeeded", store.put(intent))
    return intent


def create_refund(request: StripeRequest) -> Document:
    form = request.form
    charge = find_charge(request.store, form.text("charge") or form.required("payment_intent"))
    metadata = form.merged("metadata", {})
    return refund(request.store, charge, form.number("amount"), form.text("reason"), metadata)


def find_charge(store: Store, object_id: str) -> Document:
    """Finds the charge by its id, or by the id of its payment intent."""
    found = store.find(object_id)
    if found is not None and found["object"] == "payment_intent":
        found = store.find(found["latest_charge"])
    if found is None or found["object"] != "charge":
        raise RequestRejected(404, "resource_missing", f"No such charge: '{object_id}'", param="charge")
    return found


def refund(
    store: Store, charge: Document, cents: int | None, reason: str | None, metadata: Document
) -> Document:
    left: int = charge["amount"] - charge["amount_refunded"]
    cents = left if cents is None else cents
    if left == 0:
        message = f"Charge {charge['id']} has already been refunded."
        raise RequestRejected(400, "charge_already_refunded", message)
    if not 0 < cents <= left:
        message = f"Refund amount ({cents}) is greater than unrefunded amount on charge ({left})."
        raise RequestRejected(400, "amount_too_large", message, param="amount")
    created = store.put(
        {
            "id": new_id("re"),
            "object": "refund",
            "amount": cents,
            "charge": charge["id"],
            "created": store.now(),
            "currency": charge["currency"],
            "metadata": metadata,
            "payment_intent": charge["payment_intent"],
            "reason": reason,
            "status": "succeeded",
        }
    )
    before = charge["amount_refunded"]
    charge |= {"amount_refunded": before + cents, "refunded": cents == left}
    emit(store, "refund.created", created)
    emit(store, "charge.refunded", store.put(charge), amount_refunded=before)
    return created


def list_refunds(request: StripeRequest) -> Document:
    return paginate(request, "refund", equal=("charge", "payment_intent"))


def open_dispute(store: Store, charge: Document, cents: int | None, reason: str) -> Document:
    if charge["disputed"]:
        raise RequestRejected(400, "charge_disputed", "This charge is disputed already.")
    dispute: Document = {
        "id": new_id("dp"),
        "object": "dispute",
        "amount": charge["amount"] if cents is None else cents,
        "charge": charge["id"],
        "created": store.now(),
        "currency": charge["currency"],
        "metadata": {},
        "payment_intent": charge["payment_intent"],
        "reason": reason,
        "status": "needs_response",
    }
    store.put({**charge, "disputed": True})
    emit(store, "charge.dispute.created", store.put(dispute))
    return dispute


def close_dispute(store: Store, dispute_id: str, *, is_won: bool) -> Document:
    dispute = store.get(dispute_id, "dispute")
    if dispute["status"] in {"won", "lost"}:
        raise RequestRejected(400, "dispute_closed", "This dispute is closed already.")
    before, dispute["status"] = dispute["status"], "won" if is_won else "lost"
    emit(store, "charge.dispute.closed", store.put(dispute), status=before)
    return dispute
