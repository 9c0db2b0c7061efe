"""Cursor pages: opaque to clients, a position to us."""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from shared.errors import Invalid

T = TypeVar("T")

DIGITS_MAX = 18  # what fits a bigint
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Place(msgspec.Struct, frozen=True):
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
    text = _decode(cursor)
    if not text.startswith("p"):
        raise CursorInvalid
    return _digits(text[1:])


def encode_place(place: Place) -> str:
    microseconds = (place.at - EPOCH) // timedelta(microseconds=1)
    return _encode(f"t{microseconds}.{place.id.hex}")


def decode_place(cursor: str | None) -> Place | None:
    if cursor is None:
        return None
    text = _decode(cursor)
    microseconds, _, name = text.removeprefix("t").partition(".")
    try:
        return Place(EPOCH + timedelta(microseconds=_digits(microseconds)), UUID(name))
    except (ValueError, OverflowError):
        raise CursorInvalid from None


def _encode(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(cursor: str) -> str:
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        raise CursorInvalid from None


def _digits(text: str) -> int:
    if not (text.isdigit() and len(text) <= DIGITS_MAX):
        raise CursorInvalid
    return int(text)
