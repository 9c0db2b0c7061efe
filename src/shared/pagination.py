"""Pages of lists with opaque cursors."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from shared.errors import Invalid

T = TypeVar("T")
U = TypeVar("U")

# Cursors are hexadecimal, so that the OpenAPI document can give an exact pattern. The decoded forms are: "p"
# and a bigint; "t", microseconds (until the year 5138), a point and a UUID without hyphens; "s", the sort
# name, a colon, the sort value, a point and such a UUID.
POSITION_PATTERN = "^70(3[0-9]){1,18}$"
_TIME = "(3[0-9]){1,17}"
_ID = "2e(3[0-9]|6[1-6]){32}"
CURSOR_PATTERN = f"^74{_TIME}{_ID}$"
_VALUES: dict[type, str] = {
    datetime: _TIME,
    int: "(3[0-9]){1,18}",
    str: "(2e|3[0-9]|5f|6[1-9a-f]|7[0-9a]){1,30}",  # lowercase letters, digits, points, underscores
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Cursor(msgspec.Struct, frozen=True, order=True):
    """Position in a list ordered by time and id."""

    at: datetime
    id: UUID


LATEST = Cursor(datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))  # before the newest entry


class SortedCursor(msgspec.Struct, frozen=True):
    """Position in a list ordered by a chosen column and id."""

    value: datetime | int | str
    id: UUID


class Page(msgspec.Struct, Generic[T], frozen=True):
    items: list[T]
    next_cursor: str | None  # None on the last page

    def map(self, convert: Callable[[T], U]) -> "Page[U]":
        return Page([convert(item) for item in self.items], self.next_cursor)


def page_of(found: list[T], limit: int, cursor_of: Callable[[T], Cursor]) -> Page[T]:
    """Return the first ``limit`` rows; the caller queries one row more to detect a next page."""
    if len(found) <= limit:
        return Page(found, None)
    return Page(found[:limit], encode_cursor(cursor_of(found[limit - 1])))


class CursorInvalid(Invalid):
    code = "cursor_invalid"
    text = "The cursor is not valid. Omit it to start from the first page."


def encode_position(position: int) -> str:
    return _encode(f"p{position}")


def decode_position(cursor: str) -> int:
    return int(_decode(cursor, POSITION_PATTERN)[1:])


def encode_cursor(cursor: Cursor) -> str:
    return _encode(f"t{_microseconds(cursor.at)}.{cursor.id.hex}")


def decode_cursor(cursor: str | None) -> Cursor | None:
    if cursor is None:
        return None
    microseconds, _, name = _decode(cursor, CURSOR_PATTERN)[1:].partition(".")
    return Cursor(_instant(int(microseconds)), UUID(name))


def sorted_pattern(sorts: Mapping[str, type]) -> str:
    """Return the pattern of a list's cursors; ``sorts`` maps each sort name to the type of its values."""
    values = (f"{sort.encode().hex()}3a{_VALUES[kind]}" for sort, kind in sorts.items())
    return f"^73({'|'.join(values)}){_ID}$"


def encode_sorted(sort: str, cursor: SortedCursor) -> str:
    value = cursor.value
    text = _microseconds(value) if isinstance(value, datetime) else value
    return _encode(f"s{sort}:{text}.{cursor.id.hex}")


def decode_sorted(cursor: str | None, sort: str, kind: type) -> SortedCursor | None:
    """Decode the cursor of a sorted list. Raises CursorInvalid for the cursor of another sort as well."""
    if cursor is None:
        return None
    text = _decode(cursor, sorted_pattern({sort: kind})).partition(":")[2]
    value, _, name = text.rpartition(".")
    if kind is str:
        return SortedCursor(value, UUID(name))
    number = int(value)
    return SortedCursor(_instant(number) if kind is datetime else number, UUID(name))


def _microseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def _instant(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def _encode(text: str) -> str:
    return text.encode().hex()


def _decode(cursor: str, pattern: str) -> str:
    if not re.fullmatch(pattern, cursor):
        raise CursorInvalid
    return bytes.fromhex(cursor).decode()
