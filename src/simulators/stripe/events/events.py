"""Events, the endpoints that receive them, and the creation of their deliveries."""

import time
from typing import Any

from simulators.faults.provider_requests import Document
from simulators.stripe.http.requests import StripeRequest, paginate, parameter_missing
from simulators.stripe.store import Store, new_id

API_VERSION = "2026-10-28.endive"
ENDPOINT = "webhook_endpoint"
# Stripe creates one per endpoint; here it is constant, so that a local server can be configured with it.
SECRET = "whsec_local_simulator"  # noqa: S105  valid for a local server only


def emit(store: Store, kind: str, subject: Document, **previous: Any) -> None:  # noqa: ANN401  of any kind
    """``previous``: the former values of changed fields."""
    data: Document = {"object": subject, **({"previous_attributes": previous} if previous else {})}
    event = store.put(
        {
            "id": new_id("evt"),
            "object": "event",
            "api_version": API_VERSION,
            "created": store.now(),
            "data": data,
            "livemode": False,
            "type": kind,
        }
    )
    for endpoint in store.find_all(ENDPOINT):
        if {"*", kind} & set(endpoint["enabled_events"]):
            store.database.execute(
                "insert into deliveries (event, endpoint, status, due_s) values (?, ?, 'pending', ?)",
                (event["id"], endpoint["id"], time.time()),
            )


def list_events(request: StripeRequest) -> Document:
    return paginate(request, "event")


def create_endpoint(request: StripeRequest) -> Document:
    form = request.form
    types = form.texts("enabled_events")
    if not types:
        raise parameter_missing("enabled_events")
    endpoint: Document = {
        "id": new_id("we"),
        "object": ENDPOINT,
        "description": form.text("description"),
        "enabled_events": types,
        "url": form.required("url"),
    }
    return {**request.store.put(endpoint), "secret": SECRET}


def list_endpoints(request: StripeRequest) -> Document:
    return paginate(request, ENDPOINT)


def delete_endpoint(request: StripeRequest) -> Document:
    request.store.get(request.id, ENDPOINT)
    request.store.remove(request.id)
    request.store.database.execute("delete from deliveries where endpoint = ?", (request.id,))
    return {"id": request.id, "object": ENDPOINT, "deleted": True}
