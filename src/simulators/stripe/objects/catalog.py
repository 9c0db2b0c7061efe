"""Prices with their products, and customers."""

from simulators.faults.provider_requests import Document, RequestRejected
from simulators.stripe.events.events import emit
from simulators.stripe.http.requests import StripeRequest, paginate, parameter_missing
from simulators.stripe.store import new_id


def create_price(request: StripeRequest) -> Document:
    store, form = request.store, request.form
    recurring, cents = form.part("recurring"), form.number("unit_amount")
    if cents is None:
        raise parameter_missing("unit_amount")
    product = store.put(
        {
            "id": new_id("prod", 14),
            "object": "product",
            "name": form.part("product_data").required("name"),
            "metadata": form.part("product_data").merged("metadata", {}),
        }
    )
    lookup_key = _free_lookup_key(request)
    price: Document = {
        "id": new_id("price"),
        "object": "price",
        "active": True,
        "created": store.now(),
        "currency": form.required("currency"),
        "lookup_key": lookup_key,
        "metadata": form.merged("metadata", {}),
        "product": product["id"],
        "recurring": {"interval": recurring.required("interval"), "interval_count": 1}
        if recurring.fields
        else None,
        "type": "recurring" if recurring.fields else "one_time",
        "unit_amount": cents,
    }
    emit(store, "price.created", store.put(price))
    return price


def _free_lookup_key(request: StripeRequest) -> str | None:
    """Rejects a key that another price has."""
    key = request.form.text("lookup_key")
    if key is not None:
        for owner in request.store.find_all("price", "json_extract(document, '$.lookup_key') = ?", (key,)):
            message = f"A price (`{owner['id']}`) already uses that lookup key."
            raise RequestRejected(400, "resource_already_exists", message, param="lookup_key")
    return key


def list_prices(request: StripeRequest) -> Document:
    keys = request.form.texts("lookup_keys")
    where = f"json_extract(document, '$.lookup_key') in ({', '.join('?' * len(keys))})" if keys else "true"
    return paginate(request, "price", equal=("active",), where=where, values=tuple(keys))


def create_customer(request: StripeRequest) -> Document:
    form = request.form
    customer: Document = {
        "id": new_id("cus", 14),
        "object": "customer",
        "created": request.store.now(),
        "email": form.text("email"),
        "invoice_prefix": new_id("i", 8)[2:].upper(),
        "metadata": form.merged("metadata", {}),
        "name": form.text("name"),
        "_invoices": 0,
    }
    emit(request.store, "customer.created", request.store.put(customer))
    return customer


def list_customers(request: StripeRequest) -> Document:
    return paginate(request, "customer", equal=("email",))
