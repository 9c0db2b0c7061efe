"""Lines of a CSV file that a spreadsheet may open without harm."""

import csv
import io
from datetime import datetime


def csv_line(values: tuple[object, ...]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(_cell(value) for value in values)
    return line.getvalue()


def _cell(value: object) -> object:
    """A spreadsheet must not run what a tenant wrote as a formula."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return "'" + value
    return value
