"""Checkout sessions and their payment."""

from simulators.faults.provider_requests import Document, RequestRejected
from simulators.stripe.events.events import emit
from simulators.stripe.http.requests import Form, StripeRequest, parameter_missing
from simulators.stripe.objects import invoices, payments, subscriptions
from simulators.stripe.store import Store, new_id

KIND = "checkout.session"
OPEN_S = 86_400


def create(request: StripeRequest) -> Document:
    store, form, now = request.store, request.form, request.store.now()
    mode = form.required("mode")
    if mode not in {"payment", "subscription"}:
        raise RequestRejected(400, "parameter_invalid", f"Unknown mode: {mode}.", param="mode")
    customer = store.get(form.required("customer"), "customer", param="customer")
    items = [_item(store, item, mode) for item in form.parts("line_items")]
    if not items:
        raise parameter_missing("line_items")
    object_id = new_id("cs_test", 58)
    created_by_payment = "subscription_data" if mode == "subscription" else "payment_intent_data"
    return store.put(
        {
            "id": object_id,
            "object": KIND,
            "amount_total": sum(item["amount"] for item in items),
            "cancel_url": form.text("cancel_url"),
            "client_reference_id": form.text("client_reference_id"),
            "created": now,
            "currency": items[0]["price"]["currency"],
            "customer": customer["id"],
            "expires_at": now + OPEN_S,
            "invoice": None,
            "metadata": form.merged("metadata", {}),
            "mode": mode,
            "payment_intent": None,
            "payment_status": "unpaid",
            "status": "open",
            "subscription": None,
            "success_url": form.text("success_url"),
            "url": f"{store.address}/pay/{object_id}",
            "_creates_invoice": bool(form.part("invoice_creation").flag("enabled")),
            "_items": items,
            "_metadata": form.part(created_by_payment).merged("metadata", {}),
            "_due": now + OPEN_S,
        }
    )


def _item(store: Store, form: Form, mode: str) -> Document:
    price = store.get(form.required("price"), "price", param="line_items[0][price]")
    if (price["recurring"] is not None) != (mode == "subscription"):
        message = f"A price of type {price['type']} does not fit mode {mode}."
        raise RequestRejected(400, "parameter_invalid", message, param="line_items[0][price]")
    product = store.get(price["product"], "product")
    cents = price["unit_amount"] * (form.number("quantity") or 1)
    return {"amount": cents, "description": product["name"], "price": price}


def get_open(store: Store, session_id: str) -> Document:
    session = store.get(session_id, KIND)
    if session["status"] != "open":
        message = f"This Checkout Session is no longer open but {session['status']}."
        raise RequestRejected(400, "checkout_session_not_open", message)
    return session


def complete(store: Store, session: Document) -> bool:
    """Returns whether the card paid. A declined card leaves the session open."""
    if payments.is_declined(store, session["customer"]):
        return False
    if session["mode"] == "subscription":
        (item,) = session["_items"]
        made = subscriptions.start(store, session["customer"], item["price"], session["_metadata"])
        session |= {"subscription": made["id"], "invoice": made["latest_invoice"]}
    else:
        cents, currency = session["amount_total"], session["currency"]
        intent = payments.pay(store, cents, currency, session["customer"], session["_metadata"])
        session["payment_intent"] = intent["id"]
        if session["_creates_invoice"]:
            lines = [invoices.purchase_line(item, store.now()) for item in session["_items"]]
            session["invoice"] = invoices.issue_paid(store, session, lines, intent)["id"]
    session |= {"payment_status": "paid", "status": "complete", "url": None, "_due": None}
    emit(store, "checkout.session.completed", store.put(session))
    return True


def mark_expired(store: Store, session: Document) -> Document:
    session |= {"status": "expired", "url": None, "_due": None}
    emit(store, "checkout.session.expired", store.put(session))
    return session


def expire(request: StripeRequest) -> Document:
    return mark_expired(request.store, get_open(request.store, request.id))
