"""Stripe's API: which operation answers what, who may ask, and that what is asked twice happens once."""

import hashlib
import re

import msgspec
from litestar import Response, Router, route
from litestar.datastructures import State

from infrastructure.simulators.documents import Document
from infrastructure.simulators.provider_errors import AnyRequest, Refused
from infrastructure.simulators.spoiled import stripe_error
from infrastructure.simulators.stripe import (
    catalogue,
    changes,
    checkout,
    customers,
    endpoints,
    events,
    invoice_payments,
    invoices,
    payments,
    portal,
    refunds,
    renewals,
    schedules,
    subscriptions,
)
from infrastructure.simulators.stripe.calls import Call, Operation
from infrastructure.simulators.stripe.expansion import expand
from infrastructure.simulators.stripe.forms import Form, form_of
from infrastructure.simulators.stripe.shapes import NEWEST, shaped
from infrastructure.simulators.stripe.store import Store, new_id

PATH = "/stripe"
VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(\.[a-z]+)?")


def _account(_: Call) -> Document:
    return {"id": "acct_simulated", "object": "account", "charges_enabled": True, "country": "US"}


def _pay_invoice(call: Call) -> Document:
    invoice = call.store.get(call.id, "invoice")
    if invoice["status"] == "draft":
        invoices.finalize(call.store, invoice)
    if invoice["status"] != "open":
        raise Refused(400, "invoice_not_open", f"This invoice is {invoice['status']}.")
    is_paid = invoices.collect(call.store, invoice)
    subscriptions.settle(call.store, invoices.subscription_of(call.store, invoice), is_paid=is_paid)
    if not is_paid:
        payments.refuse_card()
    return invoice


# {} stands for the id of one thing.
OPERATIONS: dict[str, Operation] = {
    "GET /account": _account,
    "POST /billing_portal/sessions": portal.create,
    "GET /charges": payments.list_charges,
    "GET /charges/{}": payments.retrieve_charge,
    "GET /checkout/sessions": checkout.index,
    "POST /checkout/sessions": checkout.create,
    "GET /checkout/sessions/{}": checkout.retrieve,
    "POST /checkout/sessions/{}/expire": checkout.expire,
    "GET /checkout/sessions/{}/line_items": checkout.line_items,
    "GET /customers": customers.index,
    "POST /customers": customers.create,
    "GET /customers/{}": customers.retrieve,
    "POST /customers/{}": customers.update,
    "DELETE /customers/{}": customers.delete,
    "GET /disputes": refunds.list_disputes,
    "GET /disputes/{}": refunds.retrieve_dispute,
    "POST /disputes/{}/close": refunds.close_dispute,
    "GET /events": events.index,
    "GET /events/{}": events.retrieve,
    "GET /invoice_payments": invoice_payments.index,
    "GET /invoices": invoices.index,
    "POST /invoices/create_preview": changes.preview,
    "GET /invoices/{}": invoices.retrieve,
    "POST /invoices/{}/mark_uncollectible": invoices.mark_uncollectible,
    "POST /invoices/{}/pay": _pay_invoice,
    "POST /invoices/{}/void": invoices.void,
    "GET /payment_intents": payments.list_intents,
    "GET /payment_intents/{}": payments.retrieve_intent,
    "GET /prices": catalogue.list_prices,
    "POST /prices": catalogue.create_price,
    "GET /prices/{}": catalogue.retrieve_price,
    "POST /prices/{}": catalogue.update_price,
    "GET /products": catalogue.list_products,
    "POST /products": catalogue.create_product,
    "GET /products/{}": catalogue.retrieve_product,
    "POST /products/{}": catalogue.update_product,
    "GET /refunds": refunds.list_refunds,
    "POST /refunds": refunds.create_refund,
    "GET /refunds/{}": refunds.retrieve_refund,
    "GET /subscription_schedules": schedules.index,
    "POST /subscription_schedules": schedules.create,
    "GET /subscription_schedules/{}": schedules.retrieve,
    "POST /subscription_schedules/{}": schedules.update,
    "POST /subscription_schedules/{}/release": schedules.release,
    "GET /subscriptions": subscriptions.index,
    "POST /subscriptions": subscriptions.create,
    "GET /subscriptions/{}": subscriptions.retrieve,
    "POST /subscriptions/{}": changes.update,
    "DELETE /subscriptions/{}": subscriptions.cancel,
    "GET /webhook_endpoints": endpoints.index,
    "POST /webhook_endpoints": endpoints.create,
    "GET /webhook_endpoints/{}": endpoints.retrieve,
    "POST /webhook_endpoints/{}": endpoints.update,
    "DELETE /webhook_endpoints/{}": endpoints.delete,
}


def operation_of(method: str, path: str) -> tuple[Operation, str]:
    """And the id that the path names."""
    if (exact := OPERATIONS.get(f"{method} {path}")) is not None:
        return exact, ""
    parts = path.split("/")
    for place in range(len(parts) - 1, 1, -1):
        pattern = "/".join([*parts[:place], "{}", *parts[place + 1 :]])
        if (found := OPERATIONS.get(f"{method} {pattern}")) is not None:
            return found, parts[place]
    raise Refused(404, "url_unknown", f"Unrecognized request URL ({method}: /v1{path}).")


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    is_repeated: bool = False


def answered(store: Store, request: AnyRequest, body: bytes) -> Answer:
    """In one transaction with what it changes. A card's refusal is kept like a success; other refusals have
    changed nothing and may be tried again.
    """
    key = request.headers.get("idempotency-key") if request.method == "POST" else None
    path = request.scope["path"]
    fingerprint = hashlib.sha256(f"{request.method} {path}\n".encode() + body).hexdigest()
    try:
        with store.transaction():
            if key is not None and (known := _known(store, key, fingerprint)) is not None:
                return known
            renewals.catch_up(store)
            answer = _carried_out(store, request, body)
            if key is not None:
                store.database.execute(
                    "insert into answers values (?, ?, ?, ?)", (key, fingerprint, answer.status, answer.body)
                )
            return answer
    except Refused as refusal:
        return _refusal(refusal)


def _carried_out(store: Store, request: AnyRequest, body: bytes) -> Answer:
    method, path = request.method, request.scope["path"].removeprefix(f"{PATH}/v1").rstrip("/")
    if not request.headers.get("authorization", "").partition(" ")[2]:
        raise Refused(401, "api_key_missing", "You did not provide an API key.")
    query = request.scope["query_string"] if method in {"GET", "DELETE"} and not body else body
    form = form_of(query.decode("utf-8", "replace"))
    version = request.headers.get("stripe-version") or store.setting("api_version", NEWEST)
    if not VERSION.fullmatch(version):
        raise Refused(400, "parameter_invalid", f"Invalid Stripe API version: {version}")
    operation, object_id = operation_of(method, path)
    try:
        document = operation(Call(store, form, object_id, version))
    except Refused as refusal:
        if refusal.status != 402:  # noqa: PLR2004  a card's
            raise
        return _refusal(refusal)
    return Answer(200, _told(store, form, document, version))


def _told(store: Store, form: Form, document: Document, version: str) -> bytes:
    document = expand(store, msgspec.json.decode(msgspec.json.encode(document)), form.texts("expand"))
    return msgspec.json.encode(shaped(document, version))


def _known(store: Store, key: str, fingerprint: str) -> Answer | None:
    row = store.database.execute(
        "select request, status, body from answers where idempotency_key = ?", (key,)
    ).fetchone()
    if row is None:
        return None
    if row["request"] != fingerprint:
        message = "Keys for idempotent requests can only be used with the parameters of their first use."
        raise Refused(400, "idempotency_error", message)
    return Answer(row["status"], row["body"], is_repeated=True)


def _refusal(refusal: Refused) -> Answer:
    document = stripe_error(refusal.status, refusal.code, refusal.message, refusal.param)
    return Answer(refusal.status, msgspec.json.encode(document))


@route("/v1/{rest:path}", http_method=["GET", "POST", "DELETE"])
async def api(request: AnyRequest, state: State) -> Response[bytes]:
    store: Store = state.stripe.store
    body = await request.body()
    store.address = f"http://{request.headers.get('host', '127.0.0.1')}{PATH}"
    answer = answered(store, request, body)
    state.stripe.courier.wake()
    headers = {
        "Request-Id": new_id("req", 14),
        "Stripe-Version": request.headers.get("stripe-version", NEWEST),
    }
    if (key := request.headers.get("idempotency-key")) is not None:
        headers["Idempotency-Key"] = key
    if answer.is_repeated:
        headers["Idempotent-Replayed"] = "true"
    return Response(answer.body, status_code=answer.status, headers=headers, media_type="application/json")


def api_router() -> Router:
    return Router(PATH, route_handlers=[api])
