"""Timestamps in requests."""

from datetime import UTC, datetime

from shared.errors import Invalid


class TimestampInvalid(Invalid):
    code = "timestamp_invalid"
    text = "A time needs an offset and a supported year, as in 2026-11-01T00:00:00Z."


def as_utc(instant: datetime | None) -> datetime | None:
    """Convert to UTC. A time without an offset is rejected, because it would depend on the server's time
    zone.
    """
    if instant is None:
        return None
    if instant.tzinfo is None:
        raise TimestampInvalid
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise TimestampInvalid from None
