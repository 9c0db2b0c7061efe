"""Line items of an invoice."""

from simulators.faults.json_access import Document
from simulators.stripe.store import new_id


def period_line(subscription: Document, item: Document, start: int, end: int) -> Document:
    """Returns the line of a whole period, billed in advance."""
    price = item["price"]
    cents = price["unit_amount"] * item["quantity"]
    return _line(subscription, item, price, cents, (start, end), is_proration=False)


def proration_lines(subscription: Document, item: Document, price: Document, at: int) -> list[Document]:
    """Returns two lines for the rest of the period: a credit at the old price and a charge at the new one."""
    start, end = item["current_period_start"], item["current_period_end"]
    share = (end - max(at, start)) / (end - start)
    old, quantity = item["price"], item["quantity"]
    back = -round(old["unit_amount"] * quantity * share)
    due = round(price["unit_amount"] * quantity * share)
    return [
        _line(subscription, item, old, back, (at, end), is_proration=True),
        _line(subscription, item, price, due, (at, end), is_proration=True),
    ]


def sale_line(item: Document, now: int) -> Document:
    """Returns the line of a one-time purchase in a checkout session."""
    details: Document = {
        "invoice_item": new_id("ii"),
        "proration": False,
        "proration_details": {"credited_items": None},
        "subscription": None,
    }
    return {
        **_bare_line(item["price"], item["amount_total"], (now, now), item["quantity"]),
        "description": item["description"],
        "parent": {
            "type": "invoice_item_details",
            "invoice_item_details": details,
            "subscription_item_details": None,
        },
    }


def _line(
    subscription: Document,
    item: Document,
    price: Document,
    cents: int,
    period: tuple[int, int],
    *,
    is_proration: bool,
) -> Document:
    details: Document = {
        "invoice_item": None,
        "proration": is_proration,
        "proration_details": {"credited_items": None},
        "subscription": subscription["id"],
        "subscription_item": item["id"],
    }
    return {
        **_bare_line(price, cents, period, item["quantity"]),
        "description": ("Unused time" if cents < 0 else "Remaining time")
        if is_proration
        else "A month of the plan",
        "discountable": not is_proration,
        "metadata": subscription["metadata"],
        "parent": {
            "type": "subscription_item_details",
            "invoice_item_details": None,
            "subscription_item_details": details,
        },
    }


def _bare_line(price: Document, cents: int, period: tuple[int, int], quantity: int) -> Document:
    return {
        "id": new_id("il"),
        "object": "line_item",
        "amount": cents,
        "currency": price["currency"],
        "description": None,
        "discount_amounts": [],
        "discountable": True,
        "discounts": [],
        "invoice": None,
        "livemode": False,
        "metadata": {},
        "parent": None,
        "period": {"start": period[0], "end": period[1]},
        "pricing": {
            "type": "price_details",
            "price_details": {"price": price["id"], "product": price["product"]},
            "unit_amount_decimal": price["unit_amount_decimal"],
        },
        "quantity": quantity,
        "subtotal": cents,
        "taxes": [],
        "_price": price,
    }
