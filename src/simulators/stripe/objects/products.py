"""Products and their prices."""

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.events.events import emit
from simulators.stripe.http.forms import Form
from simulators.stripe.http.request import StripeRequest, listed
from simulators.stripe.store import Store, new_id

PRODUCTS, PRICES = "/v1/products", "/v1/prices"


def create_product(call: StripeRequest) -> Document:
    object_id = call.form.text("id")
    if object_id is not None and call.store.find(object_id) is not None:
        raise RequestRejected(400, "resource_already_exists", "Product already exists.", param="id")
    return _new_product(call.store, call.form, object_id or new_id("prod", 14))


def _new_product(store: Store, form: Form, object_id: str) -> Document:
    product: Document = {
        "id": object_id,
        "object": "product",
        "active": form.flag("active") is not False,
        "created": store.now(),
        "default_price": None,
        "description": form.text("description"),
        "images": [],
        "livemode": False,
        "marketing_features": [],
        "metadata": form.changed("metadata", {}),
        "name": form.needed("name"),
        "type": "service",
        "updated": store.now(),
    }
    emit(store, "product.created", store.put(product))
    return product


def retrieve_product(call: StripeRequest) -> Document:
    return call.store.get(call.id, "product")


def update_product(call: StripeRequest) -> Document:
    product, form = call.store.get(call.id, "product"), call.form
    product |= {name: form.text(name) for name in ("name", "description", "default_price") if name in form}
    product["active"] = product["active"] if form.flag("active") is None else form.flag("active")
    product["metadata"] = form.changed("metadata", product["metadata"])
    emit(call.store, "product.updated", call.store.put({**product, "updated": call.store.now()}))
    return product


def list_products(call: StripeRequest) -> Document:
    return listed(call, "product", PRODUCTS, equal=("active",))


def create_price(call: StripeRequest) -> Document:
    store, form = call.store, call.form
    if "product_data" in form:
        product = _new_product(store, form.part("product_data"), new_id("prod", 14))
    else:
        product = store.get(form.needed("product"), "product", param="product")
    price = new_price(store, form, product["id"])
    _take_lookup_key(call, price)
    emit(store, "price.created", store.put(price))
    return price


def new_price(store: Store, form: Form, product: str) -> Document:
    """Returns a price that is not stored: the line of a checkout session may have its own."""
    recurring, cents = form.part("recurring"), form.number("unit_amount")
    if cents is None:
        raise RequestRejected(
            400, "parameter_missing", "Missing required param: unit_amount.", param="unit_amount"
        )
    return {
        "id": new_id("price"),
        "object": "price",
        "active": form.flag("active") is not False,
        "billing_scheme": "per_unit",
        "created": store.now(),
        "currency": form.needed("currency"),
        "livemode": False,
        "lookup_key": form.text("lookup_key"),
        "metadata": form.changed("metadata", {}),
        "nickname": form.text("nickname"),
        "product": product,
        "recurring": {
            "interval": recurring.needed("interval"),
            "interval_count": recurring.number("interval_count") or 1,
            "meter": None,
            "trial_period_days": None,
            "usage_type": "licensed",
        }
        if recurring.fields
        else None,
        "tax_behavior": "unspecified",
        "tiers_mode": None,
        "type": "recurring" if recurring.fields else "one_time",
        "unit_amount": cents,
        "unit_amount_decimal": str(cents),
    }


def _take_lookup_key(call: StripeRequest, price: Document) -> None:
    """Moves the lookup key from another price if the client requested it; a key belongs to one price."""
    key = price["lookup_key"]
    if key is None:
        return
    for owner in call.store.some("price", "json_extract(document, '$.lookup_key') = ?", (key,)):
        if owner["id"] == price["id"]:
            continue
        if not call.form.flag("transfer_lookup_key"):
            message = f"A price (`{owner['id']}`) already uses that lookup key."
            raise RequestRejected(400, "resource_already_exists", message, param="lookup_key")
        emit(call.store, "price.updated", call.store.put({**owner, "lookup_key": None}))


def retrieve_price(call: StripeRequest) -> Document:
    return call.store.get(call.id, "price")


def update_price(call: StripeRequest) -> Document:
    price, form = call.store.get(call.id, "price"), call.form
    price |= {name: form.text(name) for name in ("nickname", "lookup_key") if name in form}
    price["active"] = price["active"] if form.flag("active") is None else form.flag("active")
    price["metadata"] = form.changed("metadata", price["metadata"])
    _take_lookup_key(call, price)
    emit(call.store, "price.updated", call.store.put(price))
    return price


def list_prices(call: StripeRequest) -> Document:
    keys = call.form.texts("lookup_keys")
    where = f"json_extract(document, '$.lookup_key') in ({', '.join('?' * len(keys))})" if keys else "true"
    equal = ("active", "product", "type", "currency")
    return listed(call, "price", PRICES, equal=equal, where=where, given=tuple(keys))
