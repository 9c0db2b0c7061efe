"""JSON as it comes: of any shape until somebody has looked."""

from typing import Any, cast

Value = Any
Document = dict[str, Any]


def part_of(document: Document, name: str) -> Document:
    """The object of that name; an empty one when there is none."""
    found = document.get(name)
    return cast("Document", found) if isinstance(found, dict) else {}


def list_of(document: Document, name: str) -> list[Any]:
    found = document.get(name)
    return cast("list[Any]", found) if isinstance(found, list) else []
