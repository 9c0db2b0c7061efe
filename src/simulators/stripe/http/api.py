"""Stripe's API: authentication, request format and idempotency keys."""

import hashlib
import re

import msgspec
from litestar import Response, Router, route
from litestar.datastructures import State

from simulators.faults.corrupt_responses import stripe_error
from simulators.faults.json_access import Document
from simulators.faults.provider_errors import AnyRequest, RequestRejected
from simulators.stripe.http.api_versions import NEWEST, shaped
from simulators.stripe.http.expansion import expand
from simulators.stripe.http.forms import Form, form_of
from simulators.stripe.http.request import StripeRequest
from simulators.stripe.http.routes import operation_of
from simulators.stripe.objects import renewals
from simulators.stripe.store import Store, new_id

PATH = "/stripe"
VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(\.[a-z]+)?")


class StripeResponse(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    is_repeated: bool = False


def answered(store: Store, request: AnyRequest, body: bytes) -> StripeResponse:
    """Stores the response in the same transaction as its changes. A card decline is stored like a success;
    other errors have changed nothing and may be retried.
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
    except RequestRejected as refusal:
        return _refusal(refusal)


def _carried_out(store: Store, request: AnyRequest, body: bytes) -> StripeResponse:
    method, path = request.method, request.scope["path"].removeprefix(f"{PATH}/v1").rstrip("/")
    if not request.headers.get("authorization", "").partition(" ")[2]:
        raise RequestRejected(401, "api_key_missing", "You did not provide an API key.")
    query = request.scope["query_string"] if method in {"GET", "DELETE"} and not body else body
    form = form_of(query.decode("utf-8", "replace"))
    version = request.headers.get("stripe-version") or store.setting("api_version", NEWEST)
    if not VERSION.fullmatch(version):
        raise RequestRejected(400, "parameter_invalid", f"Invalid Stripe API version: {version}")
    operation, object_id = operation_of(method, path)
    try:
        document = operation(StripeRequest(store, form, object_id, version))
    except RequestRejected as refusal:
        if refusal.status != 402:  # noqa: PLR2004  a card decline
            raise
        return _refusal(refusal)
    return StripeResponse(200, _told(store, form, document, version))


def _told(store: Store, form: Form, document: Document, version: str) -> bytes:
    document = expand(store, msgspec.json.decode(msgspec.json.encode(document)), form.texts("expand"))
    return msgspec.json.encode(shaped(document, version))


def _known(store: Store, key: str, fingerprint: str) -> StripeResponse | None:
    row = store.database.execute(
        "select request, status, body from answers where idempotency_key = ?", (key,)
    ).fetchone()
    if row is None:
        return None
    if row["request"] != fingerprint:
        message = "Keys for idempotent requests can only be used with the parameters of their first use."
        raise RequestRejected(400, "idempotency_error", message)
    return StripeResponse(row["status"], row["body"], is_repeated=True)


def _refusal(refusal: RequestRejected) -> StripeResponse:
    document = stripe_error(refusal.status, refusal.code, refusal.message, refusal.param)
    return StripeResponse(refusal.status, msgspec.json.encode(document))


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
