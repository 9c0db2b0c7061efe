"""Events and the creation of their deliveries."""

import time
from typing import Any

from simulators.faults.json_access import Document
from simulators.stripe.http.api_versions import NEWEST, shaped
from simulators.stripe.http.request import StripeRequest, listed
from simulators.stripe.store import Store, new_id

EVENTS = "/v1/events"


def emit(store: Store, kind: str, thing: Document, **previous: Any) -> Document:  # noqa: ANN401  values of any kind
    """``previous``: the former values of changed fields."""
    data: Document = {"object": thing, **({"previous_attributes": previous} if previous else {})}
    endpoints = [endpoint for endpoint in store.some("webhook_endpoint") if _hears(endpoint, kind)]
    event = store.put(
        {
            "id": new_id("evt"),
            "object": "event",
            "api_version": store.setting("api_version", NEWEST),
            "created": store.now(),
            "data": data,
            "livemode": False,
            "pending_webhooks": len(endpoints),
            "request": {"id": None, "idempotency_key": None},
            "type": kind,
        }
    )
    for endpoint in endpoints:
        enqueue(store, event, endpoint["id"], copies=store.setting("copies", 1))
    return event


def enqueue(
    store: Store, event: Document, endpoint: str, *, copies: int, is_held: bool | None = None
) -> None:
    is_held = store.setting("holds", default=False) if is_held is None else is_held
    status = "held" if is_held else "pending"
    if event["type"] in store.setting("drops", []):
        status = "dropped"
    for _ in range(copies):
        store.database.execute(
            "insert into deliveries (event, endpoint, status, due_s) values (?, ?, ?, ?)",
            (event["id"], endpoint, status, time.time()),
        )


def told(event: Document, version: str | None = None) -> Document:
    """Returns the event in the format of the endpoint's API version, or of the version that created it."""
    version = version or str(event["api_version"])
    data = {**event["data"], "object": shaped(event["data"]["object"], version)}
    return {**event, "api_version": version, "data": data}


def _hears(endpoint: Document, kind: str) -> bool:
    wanted = endpoint["enabled_events"]
    return endpoint["status"] == "enabled" and ("*" in wanted or kind in wanted)


def retrieve(call: StripeRequest) -> Document:
    return told(call.store.get(call.id, "event"))


def index(call: StripeRequest) -> Document:
    types = [*call.form.texts("types"), *filter(None, [call.form.text("type")])]
    where = f"json_extract(document, '$.type') in ({', '.join('?' * len(types))})" if types else "true"
    page = listed(call, "event", EVENTS, where=where, given=tuple(types))
    return {**page, "data": [told(event) for event in page["data"]]}
