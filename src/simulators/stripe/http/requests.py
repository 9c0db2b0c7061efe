"""An API call as an operation receives it: a form, in which a[b][0][c]=d is a tree, and paginated lists."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qsl

from simulators.faults.provider_requests import Document, RequestRejected
from simulators.stripe.store import Store

FIELDS_MAX = 1_000
PAGE_LENGTH, PAGE_LENGTH_MAX = 10, 100
COMPARISONS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_NAME = re.compile(r"[^\[\]]+|(?<=\[)(?=\])")


class Form:
    """All values are text until they are converted. An empty text removes the value."""

    def __init__(self, fields: Document) -> None:
        self.fields = fields

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def text(self, name: str) -> str | None:
        found = self.fields.get(name)
        return found if isinstance(found, str) and found else None

    def required(self, name: str) -> str:
        found = self.text(name)
        if found is None:
            raise parameter_missing(name)
        return found

    def number(self, name: str) -> int | None:
        found = self.text(name)
        if found is None:
            return None
        if not re.fullmatch(r"-?[0-9]{1,15}", found):
            raise RequestRejected(400, "parameter_invalid_integer", f"Invalid integer: {found}", param=name)
        return int(found)

    def flag(self, name: str) -> bool | None:
        found = self.text(name)
        if found not in {None, "true", "false"}:
            raise RequestRejected(400, "parameter_invalid_empty", f"Invalid boolean: {found}", param=name)
        return None if found is None else found == "true"

    def part(self, name: str) -> "Form":
        found = self.fields.get(name)
        return Form(cast("Document", found) if isinstance(found, dict) else {})

    def parts(self, name: str) -> list["Form"]:
        fields = _in_order(self.fields.get(name))
        return [Form(cast("Document", field)) for field in fields if isinstance(field, dict)]

    def texts(self, name: str) -> list[str]:
        return [field for field in _in_order(self.fields.get(name)) if isinstance(field, str)]

    def merged(self, name: str, values: dict[str, str]) -> dict[str, str]:
        """Merges texts by key, as for metadata: named keys change, the others stay."""
        if self.fields.get(name) == "":
            return {}
        given = {key: value for key, value in self.part(name).fields.items() if isinstance(value, str)}
        return {key: value for key, value in {**values, **given}.items() if value != ""}


def parameter_missing(name: str) -> RequestRejected:
    return RequestRejected(400, "parameter_missing", f"Missing required param: {name}.", param=name)


def parse_form(text: str) -> Form:
    try:
        fields = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise RequestRejected(400, "parameter_unknown", "This form cannot be read.") from None
    root: Document = {}
    for name, value in fields:
        _insert(root, _NAME.findall(name), value)
    return Form(root)


def _insert(tree: Document, names: list[str], value: str) -> None:
    for name in names[:-1]:
        branch = tree.setdefault(_key(tree, name), {})
        if not isinstance(branch, dict):
            raise RequestRejected(400, "parameter_unknown", "This form contradicts itself.")
        tree = cast("Document", branch)
    if names:
        tree[_key(tree, names[-1])] = value


def _key(tree: Document, name: str) -> str:
    """Returns the next index for a[]=."""
    return name or str(len(tree))


def _in_order(found: object) -> list[Any]:
    if not isinstance(found, dict):
        return []
    entries = cast("Document", found)
    return [entries[key] for key in sorted(entries, key=lambda key: (len(key), key))]


@dataclass(frozen=True, slots=True)
class StripeRequest:
    store: Store
    form: Form
    id: str  # of the object in the path, or empty


Operation = Callable[[StripeRequest], Document]


def retrieve(kind: str) -> Operation:
    return lambda request: request.store.get(request.id, kind)


def paginate(
    request: StripeRequest,
    kind: str,
    *,
    equal: tuple[str, ...] = (),
    where: str = "true",
    values: tuple[Any, ...] = (),
) -> Document:
    """Returns a page, newest first. ``equal``: parameters that must match the document's field of the same
    name. ``where``: further conditions, as SQL with its values.
    """
    form = request.form
    conditions, arguments = [where], list(values)
    for name in equal:
        if (value := form.text(name)) is not None:
            conditions.append(f"json_extract(document, '$.{name}') = ?")
            arguments.append({"true": 1, "false": 0}.get(value, value))
    for comparison, operator in COMPARISONS.items():
        if (moment := form.part("created").number(comparison)) is not None:
            conditions.append(f"json_extract(document, '$.created') {operator} ?")
            arguments.append(moment)
    if (object_id := form.text("starting_after")) is not None:
        request.store.get(object_id, kind, param="starting_after")
        conditions.append("seq < (select seq from objects where id = ?)")
        arguments.append(object_id)
    limit = _limit(form)
    found = request.store.find_all(kind, " and ".join(f"({part})" for part in conditions), tuple(arguments))
    return {"object": "list", "url": f"/v1/{kind}s", "has_more": len(found) > limit, "data": found[:limit]}


def _limit(form: Form) -> int:
    limit = PAGE_LENGTH if form.number("limit") is None else form.number("limit") or 0
    if not 1 <= limit <= PAGE_LENGTH_MAX:
        raise RequestRejected(400, "parameter_invalid_integer", "limit is from 1 to 100.", param="limit")
    return limit


def whole_list(data: list[Document]) -> Document:
    return {"object": "list", "has_more": False, "data": data}
