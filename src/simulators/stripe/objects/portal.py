"""Stripe's customer portal: the subscription, and its cancellation."""

from simulators.faults.json_access import Document
from simulators.stripe.http.request import StripeRequest
from simulators.stripe.objects.subscriptions import change
from simulators.stripe.store import Store, new_id

KIND = "billing_portal.session"


def create(call: StripeRequest) -> Document:
    store, form = call.store, call.form
    customer = store.get(form.needed("customer"), "customer", param="customer")
    object_id = new_id("bps")
    return store.put(
        {
            "id": object_id,
            "object": KIND,
            "configuration": form.text("configuration") or "bpc_simulated",
            "created": store.now(),
            "customer": customer["id"],
            "flow": None,
            "livemode": False,
            "locale": None,
            "return_url": form.text("return_url"),
            "url": f"{store.address}/portal/{object_id}",
        }
    )


def subscriptions_of(store: Store, customer: str) -> list[Document]:
    where = "customer = ? and json_extract(document, '$.status') not in ('canceled', 'incomplete_expired')"
    return store.some("subscription", where, (customer,))


def renew(store: Store, session: Document, *, goes_on: bool) -> None:
    """Does what the two buttons of the page do."""
    for subscription in subscriptions_of(store, session["customer"]):
        if subscription["schedule"]:
            continue
        ends_at = None if goes_on else subscription["items"]["data"][0]["current_period_end"]
        change(
            store,
            subscription,
            cancel_at_period_end=not goes_on,
            cancel_at=ends_at,
            canceled_at=None if goes_on else store.now(),
        )
