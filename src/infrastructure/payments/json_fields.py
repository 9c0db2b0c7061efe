"""Tolerant readers for Stripe's JSON: absent, null and wrongly typed fields all read as None."""

from datetime import UTC, datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from features.billing.domain.errors import StripeShapeUnknown

Json = dict[str, Any]
Value = TypeVar("Value")


def part(document: Json, *path: str) -> Json:
    """The object at the end of the path, or an empty object."""
    for name in path:
        found = document.get(name)
        document = cast("Json", found) if isinstance(found, dict) else {}
    return document


def listed(document: Json, *path: str) -> list[Json]:
    """The objects of a Stripe list, ``{"data": [...]}``."""
    found = part(document, *path).get("data")
    items = cast("list[object]", found) if isinstance(found, list) else []
    return [cast("Json", item) for item in items if isinstance(item, dict)]


def identifier(value: object) -> str | None:
    """The id from a field that contains an id or, expanded, the object itself."""
    if isinstance(value, dict):
        value = cast("Json", value).get("id")
    return value if isinstance(value, str) and value else None


def text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def instant(value: object) -> datetime | None:
    seconds = number(value)
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def uuid_of(value: object) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def required(value: Value | None, kind: str, field: str) -> Value:
    if value is None:
        raise StripeShapeUnknown(kind=kind, field=field)
    return value
