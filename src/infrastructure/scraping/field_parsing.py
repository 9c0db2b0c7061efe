"""Parsing of untrusted fields: each value has the expected type and is within bounds, or is absent."""

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeGuard

from infrastructure.scraping.errors import ScrapeError

HIDDEN = -1  # placeholder for a count that the owner hides
COUNT_MAX = 10**11  # no count on the platform is larger
TEXT_CHARACTERS_MAX = 5_000
ADDRESS_CHARACTERS_MAX = 2_048
NAMES_MAX = 100
FIRST_POST_AT = datetime(2010, 7, 1, tzinfo=UTC)  # the platform's first post
MILLISECONDS_FROM = 10**11  # in seconds this would be the year 5138

_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kmb]?)")
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_USERNAME = re.compile(r"[a-z0-9._]{1,30}")


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def listed(value: object) -> list[Any]:
    return list[Any](value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]


def text(value: object, characters_max: int = TEXT_CHARACTERS_MAX) -> str:
    """Text without NUL and lone surrogates, which JSON or PostgreSQL cannot store."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return ""
    whole = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return whole.replace("\0", "").strip()[:characters_max]


def address(value: object) -> str:
    found = text(value, ADDRESS_CHARACTERS_MAX + 1)
    is_address = found.startswith(("https://", "http://")) and len(found) <= ADDRESS_CHARACTERS_MAX
    return found if is_address else ""


def count(value: object) -> int | None:
    """Also parses ``"1,234"`` and ``"1.2K"``. None when hidden or not a number."""
    if isinstance(value, str):
        match = _COUNT.fullmatch(value.strip().replace(",", "").lower())
        value = float(match[1]) * _FACTORS[match[2]] if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value) or not 0 <= value <= COUNT_MAX:
        return None
    return round(value)


def required_count(value: object) -> int:
    """0 when absent or hidden. Raises ScrapeError for a value that is not a number: then the format is
    unknown and the other values are unreliable.
    """
    found = count(value)
    if found is None and value not in (None, HIDDEN):
        raise ScrapeError("malformed_response", detail="not a count")
    return found or 0


def flag(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


def instant(value: object, *, now: datetime) -> datetime | None:
    """Parses ISO 8601 (UTC by default) and seconds or milliseconds since 1970."""
    found = _from_number(value) if isinstance(value, int | float) else _from_text(value)
    if found is None or not FIRST_POST_AT <= found <= now + timedelta(days=1):
        return None
    return found


def _from_text(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return _from_number(float(value))
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(value.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _from_number(value: float) -> datetime | None:
    seconds = value / 1_000 if abs(value) >= MILLISECONDS_FROM else value
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def names(values: Iterable[object], *, characters_max: int = 100) -> tuple[str, ...]:
    """Unique, in order."""
    found = (text(value, characters_max) for value in values)
    return tuple(dict.fromkeys(name for name in found if name))[:NAMES_MAX]


def usernames(values: Iterable[object]) -> tuple[str, ...]:
    found = (text(value).lower() for value in values)
    return tuple(dict.fromkeys(name for name in found if _USERNAME.fullmatch(name)))[:NAMES_MAX]


def addresses(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found for found in map(address, values) if found))[:NAMES_MAX]
