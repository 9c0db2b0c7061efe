"""Cursor pages: opaque to clients, a position to us."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from shared.errors import Invalid

T = TypeVar("T")

# In hexadecimal, so that the document can say exactly what a cursor is: "p" and what fits a bigint; "t",
# microseconds until the year 5138, a point and a UUID without its hyphens.
POSITION_PATTERN = "^70(3[0-9]){1,18}$"
PLACE_PATTERN = "^74(3[0-9]){1,17}2e(3[0-9]|6[1-6]){32}$"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Place(msgspec.Struct, frozen=True, order=True):
    """Where a page begins in a list ordered by time and then by id."""

    at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: list[T]
    next_cursor: str | None = None  # None on the last page


def page_of(found: list[T], limit: int, place: Callable[[T], Place]) -> Page[T]:
    """The first ``limit`` of what was found; whoever asks the database asks for one more."""
    if len(found) <= limit:
        return Page(found)
    return Page(found[:limit], encode_place(place(found[limit - 1])))


class CursorInvalid(Invalid):
    code = "cursor_invalid"

    def __str__(self) -> str:
        return "The cursor is not one of ours. Leave it out to start from the first page."


def encode_cursor(position: int) -> str:
    return _encode(f"p{position}")


def decode_cursor(cursor: str) -> int:
    return int(_decode(cursor, POSITION_PATTERN)[1:])


def encode_place(place: Place) -> str:
    microseconds = (place.at - EPOCH) // timedelta(microseconds=1)
    return _encode(f"t{microseconds}.{place.id.hex}")


def decode_place(cursor: str | None) -> Place | None:
    if cursor is None:
        return None
    microseconds, _, name = _decode(cursor, PLACE_PATTERN)[1:].partition(".")
    return Place(EPOCH + timedelta(microseconds=int(microseconds)), UUID(name))


def _encode(text: str) -> str:
    return text.encode().hex()


def _decode(cursor: str, pattern: str) -> str:
    if not re.fullmatch(pattern, cursor):
        raise CursorInvalid
    return bytes.fromhex(cursor).decode()
