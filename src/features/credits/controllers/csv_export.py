"""CSV lines that are safe to open in a spreadsheet."""

import csv
import io
from datetime import datetime


def csv_line(values: tuple[object, ...]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(_cell(value) for value in values)
    return line.getvalue()


def _cell(value: object) -> object:
    """Quote text that a spreadsheet would execute as a formula."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return "'" + value
    return value
