"""Points in time as clients write them."""

from datetime import UTC, datetime

from shared.errors import Invalid


class TimestampInvalid(Invalid):
    code = "instant_invalid"

    def __str__(self) -> str:
        return "A time needs its offset and a year we can count, as in 2026-11-01T00:00:00Z."


def as_utc(instant: datetime | None) -> datetime | None:
    """Refuse a time without an offset: it would mean whatever zone the server happens to be in."""
    if instant is None:
        return None
    if instant.tzinfo is None:
        raise TimestampInvalid
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise TimestampInvalid from None
