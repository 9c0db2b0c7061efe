"""Cursor pages: opaque to clients, a position to us."""

import base64
import binascii

from shared.errors import Invalid

DIGITS_MAX = 18  # what fits a bigint


class CursorInvalid(Invalid):
    code = "cursor_invalid"

    def __str__(self) -> str:
        return "The cursor is not one of ours. Leave it out to start from the first page."


def encode_cursor(position: int) -> str:
    return base64.urlsafe_b64encode(f"p{position}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> int:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        raise CursorInvalid from None
    digits = text.removeprefix("p")
    if not (text.startswith("p") and digits.isdigit() and len(digits) <= DIGITS_MAX):
        raise CursorInvalid
    return int(digits)
