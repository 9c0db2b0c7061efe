"""Changes of a subscription: price, cancellation, and the amount due."""

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.billing_periods import period
from simulators.stripe.events.events import emit
from simulators.stripe.http.api_versions import plan_of
from simulators.stripe.http.forms import Form
from simulators.stripe.http.request import StripeRequest
from simulators.stripe.objects import invoices, payments, subscriptions
from simulators.stripe.objects.invoice_lines import period_line, proration_lines
from simulators.stripe.store import Store, new_id


def update(call: StripeRequest) -> Document:
    store, form = call.store, call.form
    subscription = store.get(call.id, "subscription")
    is_over = subscription["status"] in {"canceled", "incomplete_expired"}
    if is_over and form.fields.keys() - {"metadata", "expand"}:
        message = "A canceled subscription can only update its cancellation_details and metadata."
        raise RequestRejected(400, "resource_missing", message)
    price = wanted_price(store, subscription, form.parts("items"))
    if price is not None:
        _change_price(store, subscription, price, form)
    values: Document = _cancellation(subscription, form, store.now())
    if "metadata" in form:
        values["metadata"] = form.changed("metadata", subscription["metadata"])
    if "default_payment_method" in form:
        values["default_payment_method"] = form.text("default_payment_method")
    return subscriptions.change(store, subscription, **values)


def wanted_price(store: Store, subscription: Document, items: list[Form]) -> Document | None:
    """Returns None when the price stays the same."""
    (item,) = subscription["items"]["data"]
    for wanted in items:
        if wanted.text("id") not in {None, item["id"]}:
            message = f"No such subscription_item: '{wanted.text('id')}'"
            raise RequestRejected(404, "resource_missing", message, param="items[0][id]")
        if wanted.text("id") is None:
            raise RequestRejected(
                400, "parameter_missing", "Here a subscription has one item.", param="items[0][id]"
            )
        price_id = wanted.text("price")
        if price_id not in {None, item["price"]["id"]}:
            price = store.get(price_id or "", "price", param="items[0][price]")
            if price["recurring"] != item["price"]["recurring"]:
                raise RequestRejected(
                    400, "parameter_invalid", "Here an interval stays.", param="items[0][price]"
                )
            return price
    return None


def _change_price(store: Store, subscription: Document, price: Document, form: Form) -> None:
    (item,) = subscription["items"]["data"]
    behavior = form.text("proration_behavior") or "create_prorations"
    at = form.number("proration_date") or store.now()
    lines = [] if behavior == "none" else proration_lines(subscription, item, price, at)
    invoice = None
    if behavior == "always_invoice":
        invoice = _invoice(store, subscription, [*subscription["_pending_lines"], *lines], form)
        lines = []
        subscription["_pending_lines"] = []
    new_item = {**item, "price": price, "plan": plan_of(price)}
    subscription["_pending_lines"] += lines
    values: Document = {"items": {**subscription["items"], "data": [new_item]}}
    if invoice is not None:
        values["latest_invoice"] = invoice["id"]
    _keep_schedule(store, subscription, price)
    subscriptions.change(store, subscription, **values)
    if invoice is not None and invoice["status"] != "paid":
        subscriptions.settle(store, subscription, is_paid=False)


def _invoice(store: Store, subscription: Document, lines: list[Document], form: Form) -> Document:
    """Rejects the whole change on a card decline, if the client requested that."""
    invoice = invoices.new_invoice(store, subscription, lines, "subscription_update")
    is_strict = form.text("payment_behavior") == "error_if_incomplete"
    if is_strict and invoice["amount_due"] and payments.is_declined(store, subscription["customer"]):
        payments.refuse_card()
    emit(store, "invoice.created", store.put(invoice))
    invoices.collect(store, invoices.finalize(store, invoice))
    return invoice


def _keep_schedule(store: Store, subscription: Document, price: Document) -> None:
    """Changes the schedule's current phase together with the subscription."""
    if subscription["schedule"]:
        schedule = store.get(subscription["schedule"], "subscription_schedule")
        schedule["phases"][schedule["_phase"]]["items"][0]["price"] = price["id"]
        store.put(schedule)


def _cancellation(subscription: Document, form: Form, now: int) -> Document:
    at_end, at = form.flag("cancel_at_period_end"), form.number("cancel_at")
    if at_end is None and "cancel_at" not in form:
        return {}
    if subscription["schedule"]:
        message = (
            f"The subscription is managed by the subscription schedule `{subscription['schedule']}`, and"
            " updating any cancelation behavior directly is not allowed."
        )
        raise RequestRejected(400, "subscription_managed_by_schedule", message)
    if at_end:
        at = subscription["items"]["data"][0]["current_period_end"]
    return {
        "cancel_at_period_end": bool(at_end),
        "cancel_at": at,
        "canceled_at": now if at else None,
        "cancellation_details": {
            "comment": None,
            "feedback": None,
            "reason": "cancellation_requested" if at else None,
        },
    }


def preview(call: StripeRequest) -> Document:
    """Returns what a change would cost, and stores nothing."""
    store, form = call.store, call.form
    subscription = store.get(form.needed("subscription"), "subscription", param="subscription")
    details = form.part("subscription_details")
    price = wanted_price(store, subscription, details.parts("items"))
    (item,) = subscription["items"]["data"]
    lines: list[Document] = list(subscription["_pending_lines"])
    behavior = details.text("proration_behavior") or "create_prorations"
    if price is not None and behavior != "none":
        at = details.number("proration_date") or store.now()
        lines += proration_lines(subscription, item, price, at)
    if behavior != "always_invoice" or price is None:
        next_item = {**item, "price": price or item["price"]}
        anchor, number = subscription["billing_cycle_anchor"], subscription["_period_index"] + 1
        lines.append(period_line(subscription, next_item, *period(anchor, number, next_item["price"])))
    invoice = invoices.new_invoice(store, subscription, lines, "upcoming")
    return {**invoice, "id": new_id("upcoming_in")}
