"""Customers."""

from simulators.faults.json_access import Document
from simulators.stripe.events.events import emit
from simulators.stripe.http.request import StripeRequest, listed
from simulators.stripe.store import new_id

CUSTOMERS = "/v1/customers"
TEXTS = ("name", "email", "phone", "description")


def create(call: StripeRequest) -> Document:
    form = call.form
    customer: Document = {
        "id": new_id("cus", 14),
        "object": "customer",
        "address": None,
        "balance": 0,
        "created": call.store.now(),
        "currency": None,
        "default_source": None,
        "delinquent": False,
        "discount": None,
        "invoice_prefix": new_id("i", 8)[2:].upper(),
        "invoice_settings": {"default_payment_method": None},
        "livemode": False,
        "metadata": form.changed("metadata", {}),
        "preferred_locales": [],
        "shipping": None,
        "tax_exempt": "none",
        **{name: form.text(name) for name in TEXTS},
        "_invoices": 0,
    }
    emit(call.store, "customer.created", call.store.put(customer))
    return customer


def retrieve(call: StripeRequest) -> Document:
    return call.store.get(call.id, "customer")


def update(call: StripeRequest) -> Document:
    customer = call.store.get(call.id, "customer")
    if customer.get("deleted"):
        return customer
    customer |= {name: call.form.text(name) for name in TEXTS if name in call.form}
    customer["metadata"] = call.form.changed("metadata", customer["metadata"])
    emit(call.store, "customer.updated", call.store.put(customer))
    return customer


def delete(call: StripeRequest) -> Document:
    """Does not cancel the customer's subscriptions; the caller must do so first."""
    call.store.get(call.id, "customer")
    gone: Document = {"id": call.id, "object": "customer", "deleted": True}
    emit(call.store, "customer.deleted", call.store.put(gone))
    return gone


def index(call: StripeRequest) -> Document:
    where = "json_extract(document, '$.deleted') is null"
    return listed(call, "customer", CUSTOMERS, equal=("email",), where=where)
