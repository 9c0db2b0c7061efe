"""An API call as an operation receives it, and lists with Stripe's pagination."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.http.forms import Form
from simulators.stripe.store import Store

PAGE, PAGE_MAX = 10, 100
COMPARISONS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


@dataclass(frozen=True, slots=True)
class StripeRequest:
    store: Store
    form: Form
    id: str  # of the object in the path, or empty
    version: str  # API version that the client requested


Operation = Callable[[StripeRequest], Document]


def listed(
    call: StripeRequest,
    kind: str,
    url: str,
    *,
    equal: tuple[str, ...] = (),
    where: str = "true",
    given: tuple[Any, ...] = (),
) -> Document:
    """Returns a page, newest first. ``equal``: parameters that must match the document's field of the same
    name. ``where``: further conditions, as SQL with its values.
    """
    form, values = call.form, list(given)
    conditions = [where]
    for name in equal:
        if (value := form.text(name)) is not None:
            conditions.append(f"json_extract(document, '$.{name}') = ?")
            values.append({"true": 1, "false": 0}.get(value, value))
    for comparison, operator in COMPARISONS.items():
        if (moment := form.part("created").number(comparison)) is not None:
            conditions.append(f"json_extract(document, '$.created') {operator} ?")
            values.append(moment)
    return _page(call, kind, url, conditions, values)


def _page(call: StripeRequest, kind: str, url: str, conditions: list[str], values: list[Any]) -> Document:
    form = call.form
    limit = PAGE if form.number("limit") is None else form.number("limit") or 0
    if not 1 <= limit <= PAGE_MAX:
        raise RequestRejected(400, "parameter_invalid_integer", "limit is from 1 to 100.", param="limit")
    for name, operator in (("starting_after", "<"), ("ending_before", ">")):
        if (object_id := form.text(name)) is not None:
            call.store.get(object_id, kind, param=name)
            conditions.append(f"seq {operator} (select seq from objects where id = ?)")  # noqa: S608
            values.append(object_id)
    found = call.store.some(kind, " and ".join(f"({part})" for part in conditions), tuple(values))
    is_backwards = form.text("ending_before") is not None
    page = found[-limit:] if is_backwards else found[:limit]
    return {"object": "list", "url": url, "has_more": len(found) > limit, "data": page}


def whole_list(data: list[Document], url: str) -> Document:
    return {"object": "list", "url": url, "has_more": False, "data": data, "total_count": len(data)}
