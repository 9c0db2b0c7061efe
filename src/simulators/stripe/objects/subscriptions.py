"""Subscriptions from creation to cancellation, changes of their price, and the customer portal."""

import calendar
from datetime import UTC, datetime

from simulators.faults.provider_requests import Document, RequestRejected
from simulators.stripe.events.events import emit
from simulators.stripe.http.requests import Form, StripeRequest, paginate, whole_list
from simulators.stripe.objects import invoices, payments
from simulators.stripe.store import Store, new_id

PORTAL = "billing_portal.session"


def months_later(moment: int, months: int) -> int:
    start = datetime.fromtimestamp(moment, UTC)
    years, month = divmod(start.month - 1 + months, 12)
    year = start.year + years
    day = min(start.day, calendar.monthrange(year, month + 1)[1])
    return int(start.replace(year=year, month=month + 1, day=day).timestamp())


def period(anchor: int, index: int) -> tuple[int, int]:
    """Returns start and end of the period with this index since the anchor."""
    return months_later(anchor, index), months_later(anchor, index + 1)


def start(store: Store, customer: str, price: Document, metadata: Document) -> Document:
    """Creates a subscription and pays its first invoice. Emits the events in Stripe's order."""
    now, object_id = store.now(), new_id("sub")
    begin, end = period(now, 0)
    item: Document = {
        "id": new_id("si", 14),
        "object": "subscription_item",
        "current_period_start": begin,
        "current_period_end": end,
        "price": price,
    }
    subscription: Document = {
        "id": object_id,
        "object": "subscription",
        "billing_cycle_anchor": now,
        "cancel_at": None,
        "cancel_at_period_end": False,
        "created": now,
        "customer": customer,
        "ended_at": None,
        "items": whole_list([item]),
        "metadata": metadata,
        "schedule": None,
        "status": "incomplete",
        "_period_index": 0,
        "_due": end,
    }
    line = invoices.period_line(subscription, item, begin, end)
    invoice = invoices.new_invoice(store, customer, [line], "subscription_create", subscription)
    subscription["latest_invoice"] = store.put(invoice)["id"]
    emit(store, "customer.subscription.created", store.put(subscription))
    emit(store, "invoice.created", invoice)
    invoices.collect(store, invoices.finalize(store, invoice))
    return change(store, subscription, status="active")


def change(store: Store, subscription: Document, **values: object) -> Document:
    """Emits an event only if a value differs."""
    previous = {name: subscription[name] for name, value in values.items() if subscription[name] != value}
    subscription |= values
    store.put(subscription)
    if previous:
        emit(store, "customer.subscription.updated", subscription, **previous)
    return subscription


def end(store: Store, subscription: Document) -> Document:
    now = store.now()
    subscription |= {"status": "canceled", "ended_at": now, "_due": None}
    if subscription["schedule"]:
        schedule = store.get(subscription["schedule"], "subscription_schedule")
        emit(store, "subscription_schedule.canceled", store.put({**schedule, "status": "canceled"}))
    emit(store, "customer.subscription.deleted", store.put(subscription))
    return subscription


def create(request: StripeRequest) -> Document:
    store, form = request.store, request.form
    customer = store.get(form.required("customer"), "customer", param="customer")
    items = form.parts("items")
    if len(items) != 1:
        raise RequestRejected(400, "parameter_missing", "A subscription has one item here.", param="items")
    price = store.get(items[0].required("price"), "price", param="items[0][price]")
    if price["recurring"] is None:
        message = "A subscription needs a recurring price."
        raise RequestRejected(400, "price_not_recurring", message, param="items")
    if payments.is_declined(store, customer["id"]):
        raise payments.card_declined()
    return start(store, customer["id"], price, form.merged("metadata", {}))


def list_subscriptions(request: StripeRequest) -> Document:
    """Without a status, lists the subscriptions that have not ended."""
    where = "true" if request.form.text("status") else "json_extract(document, '$.status') != 'canceled'"
    return paginate(request, "subscription", equal=("customer",), where=where)


def cancel(request: StripeRequest) -> Document:
    subscription = request.store.get(request.id, "subscription")
    if subscription["status"] == "canceled":
        # Stripe no longer finds a canceled subscription on this route.
        raise RequestRejected(404, "resource_missing", f"No such subscription: '{request.id}'", param="id")
    return end(request.store, subscription)


def update(request: StripeRequest) -> Document:
    store, form = request.store, request.form
    subscription = store.get(request.id, "subscription")
    if subscription["status"] == "canceled" and form.fields.keys() - {"metadata", "expand"}:
        message = "A canceled subscription can only update its cancellation_details and metadata."
        raise RequestRejected(400, "resource_missing", message)
    price = _new_price(store, subscription, form.parts("items"))
    if price is not None:
        _change_price(store, subscription, price, form)
    values = _cancellation(subscription, form)
    if "metadata" in form:
        values["metadata"] = form.merged("metadata", subscription["metadata"])
    return change(store, subscription, **values)


def _new_price(store: Store, subscription: Document, items: list[Form]) -> Document | None:
    """Returns None when the price stays the same."""
    (item,) = subscription["items"]["data"]
    for form in items:
        if form.required("id") != item["id"]:
            message = f"No such subscription_item: '{form.text('id')}'"
            raise RequestRejected(404, "resource_missing", message, param="items[0][id]")
        price_id = form.text("price")
        if price_id not in {None, item["price"]["id"]}:
            price = store.get(price_id or "", "price", param="items[0][price]")
            if price["recurring"] != item["price"]["recurring"]:
                message = "The interval of a subscription cannot change here."
                raise RequestRejected(400, "parameter_invalid", message, param="items[0][price]")
            return price
    return None


def _change_price(store: Store, subscription: Document, price: Document, form: Form) -> None:
    (item,) = subscription["items"]["data"]
    values: Document = {"items": whole_list([{**item, "price": price}])}
    if form.text("proration_behavior") == "always_invoice":
        lines = _prorations(store, subscription, price, form)
        values["latest_invoice"] = _bill(store, subscription, lines, form)["id"]
    if subscription["schedule"]:
        schedule = store.get(subscription["schedule"], "subscription_schedule")
        schedule["phases"][schedule["_phase"]]["items"][0]["price"] = price["id"]
        store.put(schedule)
    change(store, subscription, **values)


def _prorations(store: Store, subscription: Document, price: Document, form: Form) -> list[Document]:
    (item,) = subscription["items"]["data"]
    return invoices.proration_lines(subscription, item, price, form.number("proration_date") or store.now())


def _bill(store: Store, subscription: Document, lines: list[Document], form: Form) -> Document:
    """Rejects the whole change on a card decline, if the client requested that."""
    customer = subscription["customer"]
    invoice = invoices.new_invoice(store, customer, lines, "subscription_update", subscription)
    is_strict = form.text("payment_behavior") == "error_if_incomplete"
    if is_strict and invoice["amount_due"] and payments.is_declined(store, customer):
        raise payments.card_declined()
    emit(store, "invoice.created", store.put(invoice))
    if not invoices.collect(store, invoices.finalize(store, invoice)):
        subscription["status"] = "past_due"
    return invoice


def _cancellation(subscription: Document, form: Form) -> Document:
    is_ending = form.flag("cancel_at_period_end")
    if is_ending is None:
        return {}
    if subscription["schedule"]:
        message = (
            f"The subscription is managed by the subscription schedule `{subscription['schedule']}`, and"
            " updating any cancelation behavior directly is not allowed."
        )
        raise RequestRejected(400, "subscription_managed_by_schedule", message)
    return _ending(subscription, is_ending=is_ending)


def _ending(subscription: Document, *, is_ending: bool) -> Document:
    ends_at = subscription["items"]["data"][0]["current_period_end"]
    return {"cancel_at_period_end": is_ending, "cancel_at": ends_at if is_ending else None}


def preview(request: StripeRequest) -> Document:
    """Returns what a change would cost, and stores nothing."""
    store, form = request.store, request.form
    subscription = store.get(form.required("subscription"), "subscription", param="subscription")
    details = form.part("subscription_details")
    (item,) = subscription["items"]["data"]
    price = _new_price(store, subscription, details.parts("items")) or item["price"]
    lines = _prorations(store, subscription, price, details)
    invoice = invoices.new_invoice(store, subscription["customer"], lines, "upcoming", subscription)
    return {**invoice, "id": new_id("upcoming_in")}


def create_portal_session(request: StripeRequest) -> Document:
    store, form = request.store, request.form
    customer = store.get(form.required("customer"), "customer", param="customer")
    object_id = new_id("bps")
    return store.put(
        {
            "id": object_id,
            "object": PORTAL,
            "customer": customer["id"],
            "return_url": form.text("return_url"),
            "url": f"{store.address}/portal/{object_id}",
        }
    )


def active_subscriptions(store: Store, customer: str) -> list[Document]:
    where = "customer = ? and json_extract(document, '$.status') != 'canceled'"
    return store.find_all("subscription", where, (customer,))


def cancel_or_resume(store: Store, customer: str, *, is_ending: bool) -> None:
    """Does what the two buttons of the portal do."""
    for subscription in active_subscriptions(store, customer):
        if not subscription["schedule"]:
            change(store, subscription, **_ending(subscription, is_ending=is_ending))
