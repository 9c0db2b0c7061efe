"""CSV exports: streamed, and safe to open in a spreadsheet."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import TypeVar

from litestar.response import Stream

T = TypeVar("T")

MEDIA_TYPE = "text/csv"
# Spreadsheets treat a text with one of these first characters, or its full-width form, as a formula.
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


async def csv_response(
    filename: str,
    columns: Sequence[str],
    chunks: AsyncIterator[list[T]],
    cells: Callable[[T], Sequence[object]],
) -> Stream:
    """Read the first chunk before the response starts, so that an error still becomes a problem document."""
    first = await anext(chunks)
    return Stream(
        _lines(columns, first, chunks, cells),
        media_type=MEDIA_TYPE,
        headers={"Content-Disposition": f'attachment; filename="{filename}"'},
    )


async def _lines(
    columns: Sequence[str],
    first: list[T],
    rest: AsyncIterator[list[T]],
    cells: Callable[[T], Sequence[object]],
) -> AsyncIterator[str]:
    yield csv_line(columns)
    yield "".join(csv_line(cells(row)) for row in first)
    async for chunk in rest:
        yield "".join(csv_line(cells(row)) for row in chunk)


def csv_line(values: Sequence[object]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(_cell(value) for value in values)
    return line.getvalue()


def _cell(value: object) -> object:
    """Prefix text that a spreadsheet would execute as a formula with an apostrophe."""
    if isinstance(value, datetime):
        return value.isoformat()
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "")
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text
