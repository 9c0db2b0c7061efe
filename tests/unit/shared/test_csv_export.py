"""Tests of CSV lines."""

import csv
import io
from datetime import UTC, datetime

import pytest

from shared.http.csv_export import csv_line


def test_numbers_and_times_are_written_as_text():
    assert (
        csv_line([1, -2, None, datetime(2026, 1, 1, 12, tzinfo=UTC)]) == "1,-2,,2026-01-01T12:00:00+00:00\r\n"
    )


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"], ids=ascii
)
def test_text_is_not_run_as_a_formula(start):
    cells = next(csv.reader(io.StringIO(csv_line([f"{start}HYPERLINK(1)", f"a{start}"]), newline="")))

    assert cells == [f"'{start}HYPERLINK(1)", f"a{start}"]


def test_line_can_be_parsed_back():
    line = csv_line(['Ana "the\0 oven", Novak\nVienna'])

    assert next(csv.reader(io.StringIO(line))) == ['Ana "the oven", Novak\nVienna']
