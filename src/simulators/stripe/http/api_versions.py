"""Documents in the format of an API version: the current one, or one before 2025-03-31, when many fields of
subscriptions and invoices had other positions.
"""

from typing import Any, cast

from simulators.faults.json_access import Document, part_of

NEWEST = "2026-10-28.endive"
BASIL = "2025-03-31"


def shaped(document: Document, version: str) -> Document:
    """Returns a deep copy without the simulator's internal fields."""
    return _shaped(document, is_old=version < BASIL)


def _shaped(value: Any, *, is_old: bool) -> Any:  # noqa: ANN401  JSON of any kind
    if isinstance(value, list):
        return [_shaped(item, is_old=is_old) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    document = cast("Document", value)
    if document.get("object") == "event":
        return document  # an event's object keeps the format in which it occurred
    if is_old and document.get("object") in OLDER:
        document = OLDER[document["object"]](document)
    return {name: _shaped(item, is_old=is_old) for name, item in document.items() if not name.startswith("_")}


def _older_subscription(document: Document) -> Document:
    items = document["items"]
    first = items["data"][0]
    bare = [
        {
            name: value
            for name, value in item.items()
            if name not in {"current_period_start", "current_period_end"}
        }
        for item in items["data"]
    ]
    return {
        **document,
        "current_period_start": first["current_period_start"],
        "current_period_end": first["current_period_end"],
        "plan": first["plan"],
        "quantity": first["quantity"],
        "items": {**items, "data": bare},
    }


def _older_invoice(document: Document) -> Document:
    details = part_of(part_of(document, "parent"), "subscription_details")
    kept = {
        name: value for name, value in document.items() if name not in {"parent", "payments", "total_taxes"}
    }
    return {
        **kept,
        "subscription": details.get("subscription"),
        "subscription_details": {"metadata": details.get("metadata")},
        "paid": document["status"] == "paid",
        "payment_intent": document["_payment_intent"],
        "charge": document["_charge"],
        "tax": None,
    }


def _older_line(document: Document) -> Document:
    parent = document["parent"]
    details = parent["subscription_item_details"] or parent["invoice_item_details"]
    kept = {name: value for name, value in document.items() if name not in {"parent", "pricing", "taxes"}}
    return {
        **kept,
        "type": "subscription" if parent["subscription_item_details"] else "invoiceitem",
        "price": document["_price"],
        "plan": plan_of(document["_price"]) if document["_price"]["recurring"] else None,
        "proration": details["proration"],
        "proration_details": details["proration_details"],
        "subscription": details["subscription"],
        "subscription_item": details.get("subscription_item"),
    }


def _older_payment(document: Document) -> Document:
    return {**document, "invoice": document["_invoice"]}


def plan_of(price: Document) -> Document:
    """Returns a price in the older plan format, which Stripe still sends as well."""
    recurring = part_of(price, "recurring")
    return {
        "id": price["id"],
        "object": "plan",
        "active": price["active"],
        "amount": price["unit_amount"],
        "amount_decimal": price["unit_amount_decimal"],
        "billing_scheme": "per_unit",
        "created": price["created"],
        "currency": price["currency"],
        "interval": recurring.get("interval"),
        "interval_count": recurring.get("interval_count"),
        "livemode": False,
        "metadata": price["metadata"],
        "nickname": price["nickname"],
        "product": price["product"],
        "usage_type": "licensed",
    }


OLDER = {
    "subscription": _older_subscription,
    "invoice": _older_invoice,
    "line_item": _older_line,
    "payment_intent": _older_payment,
    "charge": _older_payment,
}
