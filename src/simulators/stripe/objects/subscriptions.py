"""Subscriptions from creation to cancellation."""

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.billing_periods import period
from simulators.stripe.events.events import emit
from simulators.stripe.http.api_versions import plan_of
from simulators.stripe.http.request import StripeRequest, listed, whole_list
from simulators.stripe.objects import invoices, payments
from simulators.stripe.objects.invoice_lines import period_line
from simulators.stripe.store import Store, new_id

SUBSCRIPTIONS = "/v1/subscriptions"


def begin(store: Store, customer: str, price: Document, quantity: int, metadata: Document) -> Document:
    """Creates a subscription that is not paid yet: ``pay_first`` makes it active."""
    if price["recurring"] is None:
        raise RequestRejected(
            400, "price_not_recurring", "A subscription needs a recurring price.", param="items"
        )
    now, object_id = store.now(), new_id("sub")
    start, end = period(now, 0, price)
    item = _item(object_id, price, quantity, now, (start, end))
    return {
        "id": object_id,
        "object": "subscription",
        "billing_cycle_anchor": now,
        "billing_mode": {"type": "classic"},
        "cancel_at": None,
        "cancel_at_period_end": False,
        "canceled_at": None,
        "cancellation_details": {"comment": None, "feedback": None, "reason": None},
        "collection_method": "charge_automatically",
        "created": now,
        "currency": price["currency"],
        "customer": customer,
        "days_until_due": None,
        "default_payment_method": None,
        "description": None,
        "discounts": [],
        "ended_at": None,
        "items": whole_list([item], f"/v1/subscription_items?subscription={object_id}"),
        "latest_invoice": None,
        "livemode": False,
        "metadata": metadata,
        "pause_collection": None,
        "pending_update": None,
        "schedule": None,
        "start_date": now,
        "status": "incomplete",
        "trial_end": None,
        "trial_start": None,
        "_period_index": 0,
        "_pending_lines": [],
        "_due": end,
    }


def _item(subscription: str, price: Document, quantity: int, now: int, span: tuple[int, int]) -> Document:
    return {
        "id": new_id("si", 14),
        "object": "subscription_item",
        "created": now,
        "current_period_start": span[0],
        "current_period_end": span[1],
        "discounts": [],
        "metadata": {},
        "plan": plan_of(price),
        "price": price,
        "quantity": quantity,
        "subscription": subscription,
        "tax_rates": [],
    }


def first_invoice(store: Store, subscription: Document) -> Document:
    """Emits the events in Stripe's order for a new subscription."""
    item = subscription["items"]["data"][0]
    line = period_line(subscription, item, item["current_period_start"], item["current_period_end"])
    invoice = store.put(invoices.new_invoice(store, subscription, [line], "subscription_create"))
    store.put({**subscription, "latest_invoice": invoice["id"]})
    subscription["latest_invoice"] = invoice["id"]
    emit(store, "customer.subscription.created", subscription)
    emit(store, "invoice.created", invoice)
    return invoices.finalize(store, invoice)


def pay_first(store: Store, subscription: Document) -> bool:
    is_paid = invoices.collect(store, first_invoice(store, subscription))
    if is_paid:
        change(store, subscription, status="active")
    return is_paid


def change(store: Store, subscription: Document, **values: object) -> Document:
    """Emits an event only if a value differs."""
    previous = {name: subscription[name] for name, value in values.items() if subscription[name] != value}
    subscription |= values
    store.put(subscription)
    if previous:
        emit(store, "customer.subscription.updated", subscription, **previous)
    return subscription


def settle(store: Store, subscription: Document, *, is_paid: bool) -> None:
    """Updates the subscription after one of its invoices was paid or declined."""
    if is_paid and subscription["status"] in {"past_due", "unpaid", "incomplete"}:
        change(store, subscription, status="active")
    elif not is_paid and subscription["status"] == "active":
        change(store, subscription, status="past_due")


def end(store: Store, subscription: Document, reason: str) -> Document:
    now = store.now()
    subscription |= {
        "status": "canceled",
        "canceled_at": subscription["canceled_at"] or now,
        "ended_at": now,
        "cancellation_details": {"comment": None, "feedback": None, "reason": reason},
        "_due": None,
    }
    if subscription["schedule"]:
        schedule = store.get(subscription["schedule"], "subscription_schedule")
        store.put({**schedule, "status": "canceled", "canceled_at": now})
        emit(store, "subscription_schedule.canceled", {**schedule, "status": "canceled", "canceled_at": now})
    emit(store, "customer.subscription.deleted", store.put(subscription))
    return subscription


def create(call: StripeRequest) -> Document:
    store, form = call.store, call.form
    customer = store.get(form.needed("customer"), "customer", param="customer")
    items = form.parts("items")
    if len(items) != 1:
        raise RequestRejected(400, "parameter_missing", "Here a subscription has one item.", param="items")
    price = store.get(items[0].needed("price"), "price", param="items[0][price]")
    quantity = items[0].number("quantity") or 1
    if form.text("payment_behavior") == "error_if_incomplete" and payments.is_declined(store, customer["id"]):
        payments.refuse_card()
    subscription = begin(store, customer["id"], price, quantity, form.changed("metadata", {}))
    pay_first(store, store.put(subscription))
    return subscription


def retrieve(call: StripeRequest) -> Document:
    return call.store.get(call.id, "subscription")


def index(call: StripeRequest) -> Document:
    """Without a status, lists the subscriptions that have not ended."""
    status, price = call.form.text("status"), call.form.text("price")
    field = "json_extract(document, '$.status')"
    where = f"{field} not in ('canceled', 'incomplete_expired')" if status is None else "true"
    if price is not None:
        where += " and json_extract(document, '$.items.data[0].price.id') = ?"
    equal = ("customer",) if status in {None, "all"} else ("customer", "status")
    given = () if price is None else (price,)
    return listed(call, "subscription", SUBSCRIPTIONS, equal=equal, where=where, given=given)


def cancel(call: StripeRequest) -> Document:
    subscription = call.store.get(call.id, "subscription")
    if subscription["status"] == "canceled":
        # Stripe no longer finds a canceled subscription on this route.
        raise RequestRejected(404, "resource_missing", f"No such subscription: '{call.id}'", param="id")
    return end(call.store, subscription, "cancellation_requested")
