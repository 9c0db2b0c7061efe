"""Tables and key-value panels for any response of the API.

The name of a field decides its format: ``price_cents`` is an amount of money, ``duration_ms`` a duration and
``credits_delta`` a signed number. Text is sanitized, because it may come from other parties.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import click
import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from core.cli.client.api_client import Json
from core.cli.client.runtime import console, error_console
from shared.text import plain

CELL_LENGTH_MAX = 60
WIDTH_MAX = 10_000
INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00)")
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
TITLE_NOISE = re.compile(r"^is_|_(cents|at|ms|s|dollars)$")
NUMBER_FORMATS: dict[str, Callable[[float], str]] = {
    "_delta": "{:+,}".format,
    "_dollars": "{:,.6f} USD".format,
    "_ms": "{:,.0f} ms".format,
    "_s": "{:,.0f} s".format,
    "percent": "{:,.1f} %".format,
}
COLOURS = {
    **dict.fromkeys(("active", "completed", "delivered", "paid", "ready", "ok"), "green"),
    **dict.fromkeys(("dead", "disabled", "failed", "not_ready", "unpaid"), "red"),
    **dict.fromkeys(("cancelled", "degraded", "running"), "yellow"),
    "paused": "magenta",
}
TIER_COLOURS = {"hot": "red", "warm": "yellow", "cool": "cyan", "cold": "blue"}


def show_items(
    items: Sequence[Json],
    columns: Sequence[str] = (),
    *,
    as_json: bool = False,
    if_empty: str = "No entries.",
) -> None:
    """Prints a table, or one JSON object per line. Without ``columns``, the fields that fit the width."""
    if as_json:
        for item in items:
            click.echo(msgspec.json.encode(item))
    elif not items:
        click.echo(if_empty)
    elif columns:
        console.print(items_table(items, columns))
    else:
        _show_fitting_table(items)


def show_object(item: Json, fields: Sequence[str] = (), *, as_json: bool = False) -> None:
    """Prints a key-value panel, or the JSON document."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(item), indent=2))
    else:
        console.print(object_panel(item, fields))


def items_table(items: Iterable[Json], columns: Sequence[str], *, title: str | None = None) -> Table:
    """A column is a field name; ``last_run.status`` is a field of a nested object."""
    rows = list(items)
    table = Table(title=title, title_justify="left")
    for column in columns:
        values = [_field(item, column) for item in rows]
        is_id = column == "id" or column.endswith("_id")  # full length, so that it can be copied
        is_number = any(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        heading = title_of(column)
        table.add_column(
            heading,
            no_wrap=is_id,
            justify="right" if is_number else "left",
            overflow="fold",
            min_width=max(map(len, heading.split())),  # a narrow terminal does not split the words of a title
        )
    for item in rows:
        table.add_row(*(_cell_of(column, item) for column in columns))
    return table


def object_panel(item: Json, fields: Sequence[str] = (), *, title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name in fields or item:
        value = _field(item, name)
        if not _is_empty(value):
            table.add_row(title_of(name), _nested(value) or _cell_of(name, item))
    return table


def title_of(name: str) -> str:
    return TITLE_NOISE.sub("", name.replace(".", "_")).replace("_", " ")


def cell(text: str, style: str = "") -> Text:
    """Removes colours, markup and control sequences from text that we did not write."""
    return Text(plain(text), style)


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def money(cents: float, currency: str) -> str:
    return f"{cents / 100:,.2f} {currency.upper()}"


def age_of(instant: datetime) -> str:
    seconds = max(0, int((datetime.now(UTC) - instant).total_seconds()))
    return next((f"{seconds // size} {unit}" for size, unit in UNITS if seconds >= size), "now")


def field_text(name: str, value: object, currency: str = "usd") -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return _number_text(name, value, currency)
        case dict():
            pairs = cast("dict[str, object]", value).items()
            return ", ".join(f"{title_of(key)}: {field_text(key, one, currency)}" for key, one in pairs)
        case list():
            return ", ".join(field_text(name, one, currency) for one in cast("list[object]", value))
        case _:
            return INSTANT.sub(r"\1 \2", plain(str(value)))


def _number_text(name: str, value: float, currency: str) -> str:
    if name.endswith("_cents"):
        return money(value, currency)
    for suffix, text_of in NUMBER_FORMATS.items():
        if name.endswith(suffix):
            return text_of(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _field(item: Json, column: str) -> Any:  # noqa: ANN401
    value: Any = item
    for name in column.split("."):
        value = cast("Json", value).get(name) if isinstance(value, dict) else None
    return value


def _is_empty(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_empty, cast("Json", value).values()))
    return value in (None, "", [])


def _cell_of(column: str, item: Json) -> Text:
    value, name = _field(item, column), column.rpartition(".")[2]
    colours = TIER_COLOURS if name == "tier" else COLOURS if name == "status" else {}
    return cell(field_text(name, value, str(item.get("currency") or "usd")), colours.get(str(value), ""))


def _nested(value: object) -> RenderableType | None:
    """Returns a table for a nested object or a list of objects, else None."""
    if isinstance(value, dict):
        return object_panel(cast("Json", value))
    if isinstance(value, list) and all(isinstance(one, dict) for one in cast("list[object]", value)):
        items = cast("list[Json]", value)
        return items_table(items, list(items[0]))
    return None


def _show_fitting_table(items: Sequence[Json]) -> None:
    names = list(dict.fromkeys(name for item in items for name in item))
    filled = [name for name in names if not all(_is_empty(item.get(name)) for item in items)]
    short = [_shortened(item) for item in items]
    unlimited = console.options.update(width=WIDTH_MAX)
    shown = len(filled)
    while (
        shown > 1
        and console.measure(items_table(short, filled[:shown]), options=unlimited).maximum > console.width
    ):
        shown -= 1
    console.print(items_table(short, filled[:shown]))
    if shown < len(filled):
        hidden = ", ".join(map(plain, filled[shown:]))
        error_console.print(f"More fields with --json: {hidden}", markup=False, soft_wrap=True)


def _shortened(item: Json) -> Json:
    """Cuts long text, and shows a nested list as the number of its entries."""
    return {name: _short(value) for name, value in item.items()}


def _short(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    objects = cast("list[object]", value) if isinstance(value, list) else []
    if any(isinstance(one, dict) for one in objects):
        return counted(len(objects), "object")
    text = field_text("", cast("object", value))
    return text if len(text) <= CELL_LENGTH_MAX else f"{text[:CELL_LENGTH_MAX]}..."
