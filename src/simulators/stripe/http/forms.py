"""Form bodies of Stripe's clients: a[b][0][c]=d is a tree."""

import re
from typing import Any, cast
from urllib.parse import parse_qsl

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected

FIELDS_MAX = 1_000
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

    def needed(self, name: str) -> str:
        found = self.text(name)
        if found is None:
            message = f"Missing required param: {name}."
            raise RequestRejected(400, "parameter_missing", message, param=name)
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

    def changed(self, name: str, values: dict[str, str]) -> dict[str, str]:
        """Merges texts by key, as for metadata: named keys change, the others stay."""
        if self.fields.get(name) == "":
            return {}
        given = {key: value for key, value in self.part(name).fields.items() if isinstance(value, str)}
        return {key: value for key, value in {**values, **given}.items() if value != ""}


def form_of(text: str) -> Form:
    try:
        fields = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise RequestRejected(400, "parameter_unknown", "This form cannot be read.") from None
    root: Document = {}
    for name, value in fields:
        _plant(root, _NAME.findall(name), value)
    return Form(root)


def _plant(tree: Document, names: list[str], value: str) -> None:
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
