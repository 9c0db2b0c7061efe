"""Due changes: ends of periods, draft invoices and expired checkout sessions."""

from simulators.faults.provider_requests import Document
from simulators.stripe.events.events import emit
from simulators.stripe.http.requests import whole_list
from simulators.stripe.objects import checkout, invoices, schedules, subscriptions
from simulators.stripe.objects.subscriptions import period
from simulators.stripe.store import Store

BATCH = 1_000


def run_due(store: Store) -> int:
    """Runs what is due, each change at its own time, earliest first; returns the number of changes."""
    for count in range(BATCH):
        due = store.find_due()
        if due is None:
            return count
        with store.at(due["_due"]):
            CHANGES[due["object"]](store, due)
    return BATCH


def _end_period(store: Store, subscription: Document) -> None:
    if subscription["cancel_at"] is not None and subscription["cancel_at"] <= store.now():
        subscriptions.end(store, subscription)
        return
    if subscription["schedule"]:
        subscription = schedules.start_next_phase(store, subscription)
    (item,) = subscription["items"]["data"]
    index = subscription["_period_index"] + 1
    start, end = period(subscription["billing_cycle_anchor"], index)
    item = {**item, "current_period_start": start, "current_period_end": end}
    line = invoices.period_line(subscription, item, start, end)
    invoice = invoices.new_invoice(
        store, subscription["customer"], [line], "subscription_cycle", subscription
    )
    store.put({**invoice, "_due": store.now() + invoices.DRAFT_S})
    emit(store, "invoice.created", invoice)
    subscription |= {"_period_index": index, "_due": end}
    subscriptions.change(store, subscription, items=whole_list([item]), latest_invoice=invoice["id"])


def _collect_draft(store: Store, invoice: Document) -> None:
    """A declined card leaves the subscription past due: the simulator does not retry the payment."""
    is_paid = invoices.collect(store, invoices.finalize(store, invoice))
    subscription = invoices.subscription_of(store, invoice)
    if subscription["status"] != "canceled":
        subscriptions.change(store, subscription, status="active" if is_paid else "past_due")


def _expire_checkout(store: Store, session: Document) -> None:
    checkout.mark_expired(store, session)


CHANGES = {"subscription": _end_period, "invoice": _collect_draft, checkout.KIND: _expire_checkout}
