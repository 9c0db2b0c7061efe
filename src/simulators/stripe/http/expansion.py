"""Expansion of ids into objects on the client's request."""

from collections.abc import Callable
from typing import Any, cast

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.http.request import whole_list
from simulators.stripe.objects.checkout import items_of
from simulators.stripe.objects.invoice_payments import payments_of
from simulators.stripe.store import Store

DEPTH_MAX = 4


def _refunds_of(store: Store, charge: Document) -> Document:
    found = store.some("refund", "json_extract(document, '$.charge') = ?", (charge["id"],))
    return whole_list(found, f"/v1/charges/{charge['id']}/refunds")


# Fields that Stripe sends only when the client expands them.
ASKED_FOR: dict[tuple[str, str], Callable[[Store, Document], Document]] = {
    ("charge", "refunds"): _refunds_of,
    ("checkout.session", "line_items"): lambda _, session: items_of(session),
    ("invoice", "payments"): lambda _, invoice: payments_of(invoice),
}


def expand(store: Store, document: Document, paths: list[str]) -> Document:
    for path in paths:
        names = path.split(".")
        if len(names) > DEPTH_MAX:
            raise RequestRejected(
                400, "parameter_invalid", "You cannot expand more than 4 levels.", param="expand"
            )
        _expand(store, document, names, path)
    return document


def _expand(store: Store, node: Any, names: list[str], path: str) -> None:  # noqa: ANN401  JSON of any kind
    if isinstance(node, list):
        for item in cast("list[Any]", node):
            _expand(store, item, names, path)
        return
    if not names or not isinstance(node, dict):
        return
    document = cast("Document", node)
    name, *rest = names
    made = ASKED_FOR.get((document.get("object", ""), name))
    if made is not None:
        document[name] = made(store, document)
    elif name not in document:
        message = f"This property cannot be expanded ({path})."
        raise RequestRejected(400, "parameter_invalid", message, param="expand")
    if isinstance(document[name], str):
        document[name] = store.find(document[name]) or document[name]
    _expand(store, document[name], rest, path)
