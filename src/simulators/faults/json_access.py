"""Access to JSON documents of unknown shape."""

from typing import Any, cast

Value = Any
Document = dict[str, Any]


def part_of(document: Document, name: str) -> Document:
    """Returns the object of that name, or an empty one."""
    found = document.get(name)
    return cast("Document", found) if isinstance(found, dict) else {}


def list_of(document: Document, name: str) -> list[Any]:
    found = document.get(name)
    return cast("list[Any]", found) if isinstance(found, list) else []
