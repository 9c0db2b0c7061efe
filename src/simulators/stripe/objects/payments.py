"""Payment intents (the requested amount) and charges (the amount that a card paid)."""

from typing import NoReturn

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.events.events import emit
from simulators.stripe.http.request import StripeRequest, listed
from simulators.stripe.store import Store, new_id

INTENTS, CHARGES = "/v1/payment_intents", "/v1/charges"
DECLINED = "Your card was declined."
EVERYBODY = "*"


def is_declined(store: Store, customer: str | None) -> bool:
    """Returns whether the card is declined, and counts the decline down; -1 means for ever."""
    declines = store.setting("declines", {})
    for name in (customer, EVERYBODY):
        if times := declines.get(name, 0):
            store.set("declines", {**declines, name: max(times - 1, -1) if times > 0 else -1})
            return True
    return False


def refuse_card() -> NoReturn:
    raise RequestRejected(402, "card_declined", DECLINED)


def new_intent(
    store: Store, cents: int, currency: str, customer: str | None, *, invoice: str | None, metadata: Document
) -> Document:
    intent: Document = {
        "id": new_id("pi"),
        "object": "payment_intent",
        "amount": cents,
        "amount_capturable": 0,
        "amount_received": 0,
        "canceled_at": None,
        "capture_method": "automatic",
        "client_secret": new_id("pi_secret"),
        "confirmation_method": "automatic",
        "created": store.now(),
        "currency": currency,
        "customer": customer,
        "description": None,
        "last_payment_error": None,
        "latest_charge": None,
        "livemode": False,
        "metadata": metadata,
        "next_action": None,
        "payment_method": None,
        "payment_method_types": ["card"],
        "setup_future_usage": None,
        "status": "requires_payment_method",
        "_invoice": invoice,
    }
    emit(store, "payment_intent.created", store.put(intent))
    return intent


def succeed(store: Store, intent: Document) -> Document:
    charge = _new_charge(store, intent, is_paid=True)
    intent |= {
        "status": "succeeded",
        "amount_received": intent["amount"],
        "latest_charge": charge["id"],
        "payment_method": charge["payment_method"],
        "last_payment_error": None,
    }
    store.put(intent)
    emit(store, "charge.succeeded", charge)
    emit(store, "payment_intent.succeeded", intent)
    return intent


def fail(store: Store, intent: Document) -> Document:
    charge = _new_charge(store, intent, is_paid=False)
    error = {
        "type": "card_error",
        "code": "card_declined",
        "decline_code": "generic_decline",
        "message": DECLINED,
        "charge": charge["id"],
    }
    intent |= {
        "status": "requires_payment_method",
        "latest_charge": charge["id"],
        "last_payment_error": error,
    }
    store.put(intent)
    emit(store, "charge.failed", charge)
    emit(store, "payment_intent.payment_failed", intent)
    return intent


def _new_charge(store: Store, intent: Document, *, is_paid: bool) -> Document:
    return store.put(
        {
            "id": new_id("ch"),
            "object": "charge",
            "amount": intent["amount"],
            "amount_captured": intent["amount"] if is_paid else 0,
            "amount_refunded": 0,
            "balance_transaction": new_id("txn") if is_paid else None,
            "captured": is_paid,
            "created": store.now(),
            "currency": intent["currency"],
            "customer": intent["customer"],
            "description": None,
            "disputed": False,
            "failure_code": None if is_paid else "card_declined",
            "failure_message": None if is_paid else DECLINED,
            "livemode": False,
            "metadata": intent["metadata"],
            "paid": is_paid,
            "payment_intent": intent["id"],
            "payment_method": new_id("pm"),
            "payment_method_details": {"type": "card", "card": {"brand": "visa", "last4": "4242"}},
            "receipt_url": None,
            "refunded": False,
            "status": "succeeded" if is_paid else "failed",
            "_invoice": intent["_invoice"],
        }
    )


def retrieve_intent(call: StripeRequest) -> Document:
    return call.store.get(call.id, "payment_intent")


def list_intents(call: StripeRequest) -> Document:
    return listed(call, "payment_intent", INTENTS, equal=("customer",))


def retrieve_charge(call: StripeRequest) -> Document:
    return call.store.get(call.id, "charge")


def list_charges(call: StripeRequest) -> Document:
    return listed(call, "charge", CHARGES, equal=("customer", "payment_intent"))
