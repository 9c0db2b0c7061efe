"""Monthly billing periods as Stripe computes them: from the anchor, limited to the last day of the month."""

import calendar
from datetime import UTC, datetime


def months_later(moment: int, months: int) -> int:
    start = datetime.fromtimestamp(moment, UTC)
    years, month = divmod(start.month - 1 + months, 12)
    year = start.year + years
    day = min(start.day, calendar.monthrange(year, month + 1)[1])
    return int(start.replace(year=year, month=month + 1, day=day).timestamp())


def period(anchor: int, index: int) -> tuple[int, int]:
    """Returns start and end of the period with this index since the anchor."""
    return months_later(anchor, index), months_later(anchor, index + 1)
