"""Stripe's API: authentication, operations, expansion and idempotency keys."""

import hashlib
import re
from typing import Any, cast

import msgspec
from litestar import Response, Router, route
from litestar.datastructures import State

from simulators.faults.provider_requests import AnyRequest, Document, RequestRejected, stripe_error
from simulators.stripe.events import events
from simulators.stripe.http.requests import Form, Operation, StripeRequest, parse_form, retrieve
from simulators.stripe.objects import (
    catalog,
    checkout,
    invoices,
    payments,
    renewals,
    schedules,
    subscriptions,
)
from simulators.stripe.store import Store, new_id

PATH = "/stripe"
VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(\.[a-z]+)?")
VERSION_MIN = "2025-03-31"  # earlier ones have the fields of invoices and subscriptions at other positions
CARD_DECLINED = 402

# {} stands for the id of an object.
OPERATIONS: dict[str, Operation] = {
    "POST /billing_portal/sessions": subscriptions.create_portal_session,
    "POST /checkout/sessions": checkout.create,
    "GET /checkout/sessions/{}": retrieve(checkout.KIND),
    "POST /checkout/sessions/{}/expire": checkout.expire,
    "GET /customers": catalog.list_customers,
    "POST /customers": catalog.create_customer,
    "GET /customers/{}": retrieve("customer"),
    "GET /disputes/{}": retrieve("dispute"),
    "GET /events": events.list_events,
    "GET /invoices": invoices.list_invoices,
    "POST /invoices/create_preview": subscriptions.preview,
    "GET /invoices/{}": retrieve("invoice"),
    "GET /prices": catalog.list_prices,
    "POST /prices": catalog.create_price,
    "GET /refunds": payments.list_refunds,
    "POST /refunds": payments.create_refund,
    "POST /subscription_schedules": schedules.create,
    "GET /subscription_schedules/{}": retrieve(schedules.KIND),
    "POST /subscription_schedules/{}": schedules.update,
    "POST /subscription_schedules/{}/release": schedules.release,
    "GET /subscriptions": subscriptions.list_subscriptions,
    "POST /subscriptions": subscriptions.create,
    "GET /subscriptions/{}": retrieve("subscription"),
    "POST /subscriptions/{}": subscriptions.update,
    "DELETE /subscriptions/{}": subscriptions.cancel,
    "GET /webhook_endpoints": events.list_endpoints,
    "POST /webhook_endpoints": events.create_endpoint,
    "DELETE /webhook_endpoints/{}": events.delete_endpoint,
}


class StripeResponse(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    is_repeated: bool = False


@route("/v1/{rest:path}", http_method=["GET", "POST", "DELETE"])
async def api(request: AnyRequest, state: State) -> Response[bytes]:
    store: Store = state.stripe.store
    body = await request.body()
    store.address = f"http://{request.headers.get('host', '127.0.0.1')}{PATH}"
    response = _respond(store, request, body)
    state.stripe.delivery_worker.wake()
    headers = {"Request-Id": new_id("req", 14)}
    if response.is_repeated:
        headers["Idempotent-Replayed"] = "true"
    return Response(
        response.body, status_code=response.status, headers=headers, media_type="application/json"
    )


def _respond(store: Store, request: AnyRequest, body: bytes) -> StripeResponse:
    """Stores the response in the same transaction as its changes. A card decline is stored like a success;
    other errors have changed nothing and may be retried.
    """
    key = request.headers.get("idempotency-key") if request.method == "POST" else None
    fingerprint = hashlib.sha256(f"{request.method} {request.scope['path']}\n".encode() + body).hexdigest()
    try:
        with store.transaction():
            if key is not None and (stored := _find_response(store, key, fingerprint)) is not None:
                return stored
            renewals.run_due(store)
            response = _run(store, request, body)
            if key is not None:
                store.database.execute(
                    "insert into responses values (?, ?, ?, ?)",
                    (key, fingerprint, response.status, response.body),
                )
            return response
    except RequestRejected as error:
        return _error_response(error)


def _run(store: Store, request: AnyRequest, body: bytes) -> StripeResponse:
    method, path = request.method, request.scope["path"].removeprefix(f"{PATH}/v1").rstrip("/")
    if not request.headers.get("authorization", "").partition(" ")[2]:
        raise RequestRejected(401, "api_key_missing", "You did not provide an API key.")
    version = request.headers.get("stripe-version", events.API_VERSION)
    if not VERSION.fullmatch(version) or version < VERSION_MIN:
        raise RequestRejected(400, "parameter_invalid", f"Invalid Stripe API version: {version}")
    query = request.scope["query_string"] if method in {"GET", "DELETE"} and not body else body
    form = parse_form(query.decode("utf-8", "replace"))
    operation, object_id = _find_operation(method, path)
    try:
        document = operation(StripeRequest(store, form, object_id))
    except RequestRejected as error:
        if error.status != CARD_DECLINED:
            raise
        return _error_response(error)
    return StripeResponse(200, msgspec.json.encode(public(_expanded(store, form, document))))


def _find_operation(method: str, path: str) -> tuple[Operation, str]:
    """Returns the operation and the id in the path."""
    if (exact := OPERATIONS.get(f"{method} {path}")) is not None:
        return exact, ""
    parts = path.split("/")
    for position in range(len(parts) - 1, 1, -1):
        pattern = "/".join([*parts[:position], "{}", *parts[position + 1 :]])
        if (found := OPERATIONS.get(f"{method} {pattern}")) is not None:
            return found, parts[position]
    raise RequestRejected(404, "url_unknown", f"Unrecognized request URL ({method}: /v1{path}).")


def _expanded(store: Store, form: Form, document: Document) -> Document:
    """Replaces ids by their objects in the fields that the client names; ``data.`` means each list item."""
    for path in form.texts("expand"):
        name = path.removeprefix("data.")
        documents = [document] if name == path else cast("list[Document]", document["data"])
        for item in documents:
            if name == "payments" and item["object"] == "invoice":
                item[name] = invoices.payments_of(item)
            elif name not in item:
                message = f"This property cannot be expanded ({path})."
                raise RequestRejected(400, "parameter_invalid", message, param="expand")
            elif isinstance(item[name], str):
                item[name] = store.find(item[name]) or item[name]
    return document


def public(value: Any) -> Any:  # noqa: ANN401  JSON of any kind
    """Returns a copy without the simulator's internal fields."""
    if isinstance(value, list):
        return [public(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("Document", value)
    return {name: public(item) for name, item in fields.items() if not name.startswith("_")}


def _find_response(store: Store, key: str, fingerprint: str) -> StripeResponse | None:
    row = store.database.execute(
        "select request, status, body from responses where idempotency_key = ?", (key,)
    ).fetchone()
    if row is None:
        return None
    if row["request"] != fingerprint:
        message = "Keys for idempotent requests can only be used with the parameters of their first use."
        raise RequestRejected(400, "idempotency_error", message)
    return StripeResponse(row["status"], row["body"], is_repeated=True)


def _error_response(error: RequestRejected) -> StripeResponse:
    document = stripe_error(error.status, error.code, error.message, error.param)
    return StripeResponse(error.status, msgspec.json.encode(document))


def api_router() -> Router:
    return Router(PATH, route_handlers=[api])
