"""Truncation and time window of reports."""

from datetime import UTC, datetime, timedelta

import pytest

from features.costs.application.reports import LINES_MAX, CostReports
from features.costs.domain.errors import WindowInvalid
from features.costs.domain.reports import Latency
from tests.support import NOON

LINE = Latency(method="GET", route="/", requests=1, failures=0, p50_ms=1.0, p95_ms=1.0)


class Lines:
    """Fake figures with ``count`` lines."""

    def __init__(self, count):
        self.count = count

    async def latencies(self, window, *, lines_max):
        del window
        return [LINE] * min(self.count, lines_max)


@pytest.mark.parametrize(
    ("count", "shown", "is_complete"),
    [(0, 0, True), (LINES_MAX, LINES_MAX, True), (LINES_MAX + 1, LINES_MAX, False)],
)
async def test_truncated_report_is_marked_incomplete(count, shown, is_complete):
    report = await CostReports(Lines(count), lambda: NOON).latencies(None, None)

    assert (len(report.lines), report.is_complete) == (shown, is_complete)


async def test_default_window_is_thirty_days_before_the_end():
    until = NOON - timedelta(days=100)

    report = await CostReports(Lines(0), lambda: NOON).latencies(None, until)

    assert (report.window.since, report.window.until) == (until - timedelta(days=30), until)


async def test_window_that_overflows_is_rejected():
    with pytest.raises(WindowInvalid):
        await CostReports(Lines(0), lambda: NOON).latencies(None, datetime(1, 1, 2, tzinfo=UTC))
