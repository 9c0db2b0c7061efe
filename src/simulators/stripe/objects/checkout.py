"""Checkout sessions and their payment."""

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.events.events import emit
from simulators.stripe.http.forms import Form
from simulators.stripe.http.request import StripeRequest, listed, whole_list
from simulators.stripe.objects import invoices, payments, subscriptions
from simulators.stripe.objects import products as catalogue
from simulators.stripe.objects.invoice_lines import sale_line
from simulators.stripe.store import Store, new_id

SESSIONS, KIND = "/v1/checkout/sessions", "checkout.session"
OPEN_S, OPEN_S_MIN = 86_400, 1_800


def create(call: StripeRequest) -> Document:
    store, form, now = call.store, call.form, call.store.now()
    mode = form.needed("mode")
    if mode not in {"payment", "subscription"}:
        raise RequestRejected(400, "parameter_invalid", f"Here a till takes no {mode}.", param="mode")
    if (customer := form.text("customer")) is not None:
        customer = store.get(customer, "customer", param="customer")["id"]
    elif mode == "subscription":
        # Stripe would create a customer; our billing always sends one.
        raise RequestRejected(400, "parameter_missing", "Here a subscriber is a customer.", param="customer")
    items = [_item(store, item, mode) for item in form.parts("line_items")]
    if not items:
        raise RequestRejected(
            400, "parameter_missing", "Missing required param: line_items.", param="line_items"
        )
    expires_at = form.number("expires_at") or now + OPEN_S
    if not now + OPEN_S_MIN <= expires_at + 60 <= now + OPEN_S + 120:
        message = "The `expires_at` timestamp must be from 30 minutes to 24 hours from now."
        raise RequestRejected(400, "parameter_invalid_integer", message, param="expires_at")
    total = sum(item["amount_total"] for item in items)
    object_id = new_id("cs_test", 58)
    return store.put(
        {
            "id": object_id,
            "object": KIND,
            "amount_subtotal": total,
            "amount_total": total,
            "cancel_url": form.text("cancel_url"),
            "client_reference_id": form.text("client_reference_id"),
            "created": now,
            "currency": items[0]["currency"],
            "customer": customer,
            "customer_details": None,
            "customer_email": form.text("customer_email"),
            "expires_at": expires_at,
            "invoice": None,
            "invoice_creation": {"enabled": bool(form.part("invoice_creation").flag("enabled"))}
            if mode == "payment"
            else None,
            "livemode": False,
            "metadata": form.changed("metadata", {}),
            "mode": mode,
            "payment_intent": None,
            "payment_method_types": ["card"],
            "payment_status": "unpaid",
            "status": "open",
            "subscription": None,
            "success_url": form.text("success_url"),
            "ui_mode": "hosted",
            "url": f"{store.address}/pay/{object_id}",
            "_items": items,
            "_later_metadata": _later_metadata(form, mode),
            "_due": expires_at,
        }
    )


def _later_metadata(form: Form, mode: str) -> Document:
    """Returns the metadata of the object that the payment creates."""
    name = "subscription_data" if mode == "subscription" else "payment_intent_data"
    return form.part(name).changed("metadata", {})


def _item(store: Store, form: Form, mode: str) -> Document:
    quantity = form.number("quantity") or 1
    if "price_data" in form:
        price = catalogue.new_price(store, form.part("price_data"), new_id("prod", 14))
        name = form.part("price_data").part("product_data").text("name") or "Something"
        store.put(price)
    else:
        price = store.get(form.needed("price"), "price", param="line_items[0][price]")
        name = (store.find(price["product"]) or {}).get("name", "Something")
    if (price["recurring"] is not None) != (mode == "subscription"):
        message = f"A price of type {price['type']} does not fit mode {mode}."
        raise RequestRejected(400, "parameter_invalid", message, param="line_items[0][price]")
    cents = price["unit_amount"] * quantity
    return {
        "id": new_id("li"),
        "object": "item",
        "amount_subtotal": cents,
        "amount_total": cents,
        "currency": price["currency"],
        "description": name,
        "price": price,
        "quantity": quantity,
    }


def open_session(store: Store, session_id: str) -> Document:
    session = store.get(session_id, KIND)
    if session["status"] != "open":
        message = f"This Checkout Session is no longer open but {session['status']}."
        raise RequestRejected(400, "checkout_session_not_open", message)
    return session


def complete(store: Store, session: Document, *, is_delayed: bool = False) -> bool:
    """Returns whether the card paid. ``is_delayed``: paid by a bank that takes days, see ``settle``."""
    if session["mode"] == "subscription":
        return _complete_subscription(store, session)
    intent = payments.new_intent(
        store,
        session["amount_total"],
        session["currency"],
        session["customer"],
        invoice=None,
        metadata=session["_later_metadata"],
    )
    if is_delayed:
        intent |= {"status": "processing"}
        emit(store, "payment_intent.processing", store.put(intent))
    elif payments.is_declined(store, session["customer"]):
        payments.fail(store, intent)
        return False
    else:
        payments.succeed(store, intent)
        _bill(store, session, intent)
    _close(store, session, payment_intent=intent["id"], payment_status="unpaid" if is_delayed else "paid")
    return True


def _bill(store: Store, session: Document, intent: Document) -> None:
    """Creates an invoice for the purchase if the merchant requested one."""
    if session["invoice_creation"]["enabled"] and session["customer"]:
        lines = [sale_line(item, store.now()) for item in session["_items"]]
        session["invoice"] = invoices.issue_paid(store, session, lines, intent)["id"]


def _complete_subscription(store: Store, session: Document) -> bool:
    """Leaves the session open and creates no subscription when the card is declined."""
    if payments.is_declined(store, session["customer"]):
        return False
    (item,) = session["_items"]
    customer, metadata = session["customer"], session["_later_metadata"]
    subscription = subscriptions.begin(store, customer, item["price"], item["quantity"], metadata)
    subscriptions.pay_first(store, store.put(subscription))
    values = {"subscription": subscription["id"], "invoice": subscription["latest_invoice"]}
    _close(store, session, payment_status="paid", **values)
    return True


def _close(store: Store, session: Document, **values: object) -> None:
    customer = store.find(session["customer"] or "") or {}
    details = {"email": customer.get("email") or session["customer_email"], "name": customer.get("name")}
    session |= {"status": "complete", "url": None, "customer_details": details, "_due": None, **values}
    emit(store, "checkout.session.completed", store.put(session))


def settle(store: Store, session: Document, *, is_paid: bool) -> Document:
    """Records the final result of a delayed payment."""
    intent = store.get(session["payment_intent"] or "", "payment_intent")
    if is_paid:
        payments.succeed(store, intent)
        _bill(store, session, intent)
        session["payment_status"] = "paid"
    else:
        payments.fail(store, intent)
    kind = "succeeded" if is_paid else "failed"
    emit(store, f"checkout.session.async_payment_{kind}", store.put(session))
    return session


def lapse(store: Store, session: Document) -> Document:
    session |= {"status": "expired", "url": None, "_due": None}
    emit(store, "checkout.session.expired", store.put(session))
    return session


def expire(call: StripeRequest) -> Document:
    return lapse(call.store, open_session(call.store, call.id))


def retrieve(call: StripeRequest) -> Document:
    return call.store.get(call.id, KIND)


def index(call: StripeRequest) -> Document:
    equal = ("customer", "payment_intent", "status", "subscription")
    return listed(call, KIND, SESSIONS, equal=equal)


def items_of(session: Document) -> Document:
    return whole_list(session["_items"], f"{SESSIONS}/{session['id']}/line_items")


def line_items(call: StripeRequest) -> Document:
    return items_of(call.store.get(call.id, KIND))
