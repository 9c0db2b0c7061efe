"""CSV exports: streamed, and safe to open in a spreadsheet."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import TypeVar

import msgspec
from litestar.response import Stream

T = TypeVar("T", bound=msgspec.Struct)

MEDIA_TYPE = "text/csv"
# Spreadsheets treat a text with one of these first characters, or its full-width form, as a formula.
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


async def csv_response(
    filename: str, kind: type[T], columns: Sequence[str], chunks: AsyncIterator[list[T]]
) -> Stream:
    """Stream the fields named by the columns, by their names in JSON.

    The first chunk is read before the response starts, so that an error still becomes a problem document.
    """
    attributes = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
    cells = attrgetter(*(attributes[column] for column in columns))
    first = await anext(chunks)
    return Stream(
        _lines(cells, columns, first, chunks),
        media_type=MEDIA_TYPE,
        headers={"Content-Disposition": f'attachment; filename="{filename}"'},
    )


async def _lines(
    cells: Callable[[T], Sequence[object]],
    columns: Sequence[str],
    first: list[T],
    rest: AsyncIterator[list[T]],
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
