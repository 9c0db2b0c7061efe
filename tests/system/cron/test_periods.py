"""Billing periods for every anchor day of four years over sixty months: contiguous and correct (T18)."""

from calendar import monthrange
from datetime import UTC, datetime, timedelta

FIRST_DAY, DAYS, MONTHS = datetime(2024, 1, 1, 13, 7, 41, tzinfo=UTC), 4 * 365 + 1, 60
ANCHORS = """
select ($1::timestamptz at time zone 'utc' + make_interval(days => day)) at time zone 'utc' as anchor, day
from generate_series(0, $2::int - 1) as day
"""
PERIODS = f"""
select billing.period_start(d.anchor, n) as starts, billing.period_start(d.anchor, n + 1) as ends
from ({ANCHORS}) as d cross join generate_series(0, $3::int - 1) as n
order by d.day, n
"""
INDEXES = f"""
select n, billing.period_index(d.anchor, billing.period_start(d.anchor, n)) as at_start,
    billing.period_index(d.anchor, billing.period_start(d.anchor, n + 1) - interval '1 microsecond') as at_end
from ({ANCHORS}) as d cross join unnest($3::int[]) as n
"""


def month_later(anchor, months):
    """Return the same day of the later month, or its last day."""
    years, month = divmod(anchor.month - 1 + months, 12)
    year, month = anchor.year + years, month + 1
    return anchor.replace(year=year, month=month, day=min(anchor.day, monthrange(year, month)[1]))


async def test_periods_follow_the_calendar_and_are_contiguous(owner):
    async with owner.transaction():
        await owner.execute("set local timezone = 'Europe/Berlin'")  # the session's time zone must not matter
        rows = await owner.fetch(PERIODS, FIRST_DAY, DAYS, MONTHS)

    expected = [
        (month_later(anchor, month), month_later(anchor, month + 1))
        for anchor in (FIRST_DAY + timedelta(days=day) for day in range(DAYS))
        for month in range(MONTHS)
    ]
    assert len(expected) == 87_660
    assert [tuple(row) for row in rows] == expected


async def test_period_index_matches_the_start_and_end_of_each_period(owner):
    rows = await owner.fetch(INDEXES, FIRST_DAY, DAYS, [0, 1, 12, 25, 59])

    assert len(rows) == 5 * DAYS
    assert [row for row in rows if not row["n"] == row["at_start"] == row["at_end"]] == []
