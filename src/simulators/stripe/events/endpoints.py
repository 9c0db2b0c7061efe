"""Webhook endpoints that receive events."""

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.http.request import StripeRequest, listed
from simulators.stripe.store import new_id

ENDPOINTS, KIND = "/v1/webhook_endpoints", "webhook_endpoint"
# Stripe creates one per endpoint; here it is constant, so that a local server can be configured with it.
SECRET = "whsec_local_simulator"  # noqa: S105  valid for a local server only


def create(call: StripeRequest) -> Document:
    form = call.form
    events = form.texts("enabled_events")
    if not events:
        raise RequestRejected(
            400, "parameter_missing", "Missing required param: enabled_events.", param="enabled_events"
        )
    endpoint: Document = {
        "id": new_id("we"),
        "object": KIND,
        "api_version": form.text("api_version"),
        "application": None,
        "created": call.store.now(),
        "description": form.text("description"),
        "enabled_events": events,
        "livemode": False,
        "metadata": form.changed("metadata", {}),
        "status": "enabled",
        "url": form.needed("url"),
    }
    return {**call.store.put(endpoint), "secret": SECRET}


def retrieve(call: StripeRequest) -> Document:
    return call.store.get(call.id, KIND)


def update(call: StripeRequest) -> Document:
    endpoint, form = call.store.get(call.id, KIND), call.form
    if (is_disabled := form.flag("disabled")) is not None:
        endpoint["status"] = "disabled" if is_disabled else "enabled"
    endpoint["enabled_events"] = form.texts("enabled_events") or endpoint["enabled_events"]
    endpoint["url"] = form.text("url") or endpoint["url"]
    endpoint["metadata"] = form.changed("metadata", endpoint["metadata"])
    return call.store.put(endpoint)


def delete(call: StripeRequest) -> Document:
    call.store.get(call.id, KIND)
    call.store.remove(call.id)
    call.store.database.execute("delete from deliveries where endpoint = ?", (call.id,))
    return {"id": call.id, "object": KIND, "deleted": True}


def index(call: StripeRequest) -> Document:
    return listed(call, KIND, ENDPOINTS)
