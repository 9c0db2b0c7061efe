"""Due changes: ends of periods, finalized invoices, payment retries and expired checkout sessions."""

from simulators.faults.json_access import Document
from simulators.stripe.billing_periods import period
from simulators.stripe.events.events import emit
from simulators.stripe.objects import checkout, invoices, schedules, subscriptions
from simulators.stripe.objects.invoice_lines import period_line
from simulators.stripe.store import Store

ENDED = {"canceled", "incomplete_expired"}


def catch_up(store: Store, count_max: int = 1_000) -> int:
    """Runs everything that is due, each at its own time, earliest first; returns the number of changes."""
    for count in range(count_max):
        thing = store.due(store.now())
        if thing is None:
            return count
        with store.at(thing["_due"]):
            HAPPENINGS[thing["object"]](store, thing)
    return count_max


def _end_period(store: Store, subscription: Document) -> None:
    ends_at = subscription["cancel_at"]
    if subscription["status"] == "incomplete":
        subscriptions.change(store, {**subscription, "_due": None}, status="incomplete_expired")
        return
    if ends_at is not None and ends_at <= store.now():
        subscriptions.end(store, subscription, "cancellation_requested")
        return
    if subscription["schedule"]:
        subscription = schedules.follow(store, subscription)
    _begin_period(store, subscription)


def _begin_period(store: Store, subscription: Document) -> None:
    (item,) = subscription["items"]["data"]
    number = subscription["_period_index"] + 1
    past = (item["current_period_start"], item["current_period_end"])
    start, end = period(subscription["billing_cycle_anchor"], number, item["price"])
    item = {**item, "current_period_start": start, "current_period_end": end}
    lines = [*subscription["_pending_lines"], period_line(subscription, item, start, end)]
    invoice = invoices.new_invoice(store, subscription, lines, "subscription_cycle", past)
    store.put({**invoice, "_due": store.now() + invoices.DRAFT_S})
    subscription |= {"_period_index": number, "_pending_lines": [], "_due": end}
    emit(store, "invoice.created", invoice)
    values = {"items": {**subscription["items"], "data": [item]}, "latest_invoice": invoice["id"]}
    subscriptions.change(store, subscription, **values)


def _go_on(store: Store, invoice: Document) -> None:
    """Finalizes a draft, and charges the card for the first time or again."""
    if invoice["status"] == "draft":
        invoice = invoices.finalize(store, invoice)
    is_paid = invoices.collect(store, invoice)
    subscription = invoices.subscription_of(store, invoice)
    if subscription["status"] in ENDED:
        return
    subscriptions.settle(store, subscription, is_paid=is_paid)
    if not is_paid and invoice["next_payment_attempt"] is None:
        _give_up(store, subscription)


def _give_up(store: Store, subscription: Document) -> None:
    match store.setting("after_retries", "canceled"):
        case "canceled":
            subscriptions.end(store, subscription, "payment_failed")
        case status:
            subscriptions.change(store, subscription, status=status)


def _close_till(store: Store, session: Document) -> None:
    checkout.lapse(store, session)


HAPPENINGS = {"subscription": _end_period, "invoice": _go_on, "checkout.session": _close_till}
