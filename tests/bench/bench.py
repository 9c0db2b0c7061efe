"""Measures Oslira against floors taken in the same run. Start it with scripts/bench."""

import asyncio
import os
import platform
import signal
import sys
from pathlib import Path

import click
import msgspec
import uvloop
from door_rows import door_and_no_door, keys_and_tokens
from ledger_rows import long_and_short_history, spends_and_pgbench
from place import BenchFailed, open_place
from provider_rows import (
    cached_profile_and_bare_file,
    four_and_the_slowest,
    gateway_and_bare_sdk,
    outage_and_good_day,
    thousand_again_and_once,
)
from rich.console import Console
from rich.table import Table
from rounds import Result, Row, measure
from session_rows import (
    balance_and_bare_query_on_our_pool,
    session_and_bare_query,
    session_and_bare_query_on_our_pool,
)
from web_rows import balance_and_empty_route, balance_and_peer

ROWS = [
    Row(
        name="empty-route",
        title="balance read / empty Litestar route",
        unit="requests/s",
        target=0.25,
        set_up=balance_and_empty_route,
    ),
    Row(
        name="peer",
        title="balance read / FastAPI + SQLAlchemy + pydantic",
        unit="requests/s",
        target=5,
        set_up=balance_and_peer,
    ),
    Row(
        name="door",
        title="balance read with token, limits and request points / without",
        unit="µs",
        target=1.4,
        smaller_is_better=True,
        set_up=door_and_no_door,
    ),
    Row(
        name="keys",
        title="balance read with an API key / with a token",
        unit="µs",
        target=1.3,
        smaller_is_better=True,
        set_up=keys_and_tokens,
    ),
    Row(
        name="rls",
        title="RLS session / bare query on asyncpg's pool",
        unit="calls/s",
        target=0.6,
        set_up=session_and_bare_query,
    ),
    Row(
        name="rls-read",
        title="RLS read as the API makes it / bare query, both on our pool",
        unit="calls/s",
        target=0.6,
        set_up=balance_and_bare_query_on_our_pool,
    ),
    Row(
        name="rls-own-pool",
        title="RLS session / bare query, both on our pool",
        unit="calls/s",
        target=None,
        set_up=session_and_bare_query_on_our_pool,
    ),
    Row(
        name="spends",
        title="spends on 1,000 accounts / pgbench of the same function",
        unit="spends/s",
        target=0.6,
        set_up=spends_and_pgbench,
    ),
    Row(
        name="history",
        title="balance read with 1,000,000 ledger rows / with 10",
        unit="µs",
        target=1.3,
        smaller_is_better=True,
        set_up=long_and_short_history,
    ),
    Row(
        name="gateway",
        title="CPU of a question to a model through the gateway / through its maker's client alone",
        unit="µs",
        target=1.3,
        smaller_is_better=True,
        set_up=gateway_and_bare_sdk,
    ),
    Row(
        name="fan-out",
        title="four questions at once / one",
        unit="ms",
        target=1.1,
        smaller_is_better=True,
        set_up=four_and_the_slowest,
    ),
    Row(
        name="profile-hit",
        title="p95 of a remembered profile from the local store / its file read by hand",
        unit="µs",
        target=10,
        smaller_is_better=True,
        set_up=cached_profile_and_bare_file,
    ),
    Row(
        name="memory",
        title="memory after thousands of simultaneous questions / after the first thousand",
        unit="MB",
        target=1.1,
        smaller_is_better=True,
        set_up=thousand_again_and_once,
    ),
    Row(
        name="outage",
        title="p95 of an answer while OpenAI is down / of the model that stands in, asked first",
        unit="ms",
        target=1.5,
        smaller_is_better=True,
        set_up=outage_and_good_day,
    ),
]
FAILED = 2  # 1 is for a target that was missed


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", type=click.Choice([row.name for row in ROWS]), multiple=True, help="Repeatable.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--seconds", type=click.IntRange(1), default=3, show_default=True, help="Of each half round.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write every round.")
def main(only: tuple[str, ...], rounds: int, seconds: int, file: Path | None) -> None:
    """Ratios of what Oslira does to what the same machine can do at the same time.

    Subject and floor are measured in turns, round by round; a figure is the median of the rounds'
    ratios. Exits 1 when a target is missed, 2 when there is no figure.
    """
    rows = [row for row in ROWS if not only or row.name in only]
    try:
        results = uvloop.run(_measure_all(rows, rounds, seconds))
    except BenchFailed as failure:
        click.echo(f"Error: {failure}", err=True)
        sys.exit(FAILED)
    except (KeyboardInterrupt, asyncio.CancelledError):
        click.echo("Stopped.", err=True)
        sys.exit(FAILED)
    # A file or a pipe has no width of its own.
    Console(width=None if sys.stdout.isatty() else 140).print(_table(results))
    if file:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(_document(results, seconds))) + b"\n")
    sys.exit(0 if all(result.is_met for result in results) else 1)


async def _measure_all(rows: list[Row], rounds: int, seconds: int) -> list[Result]:
    # Like Ctrl-C: whatever was started is stopped on the way out.
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    console = Console(stderr=True)
    with console.status("Starting PostgreSQL") as status:
        tell = status.update if console.is_terminal else console.print
        async with open_place() as place:
            return [await measure(row, place, rounds=rounds, seconds=seconds, tell=tell) for row in rows]


def _table(results: list[Result]) -> Table:
    table = Table("figure", title="Ratios, median of the rounds")
    for heading in ("ratio", "target", "met", "rounds", "subject / floor"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        ratios = sorted(pair.ratio for pair in result.pairs)
        subject, floor = result.medians
        table.add_row(
            result.row.title,
            f"[bold]{result.ratio:.2f}[/]",
            _target(result.row),
            "[green]yes[/]" if result.is_met else "[red]no[/]",
            f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
            f"{subject:,.0f} / {floor:,.0f} {result.row.unit}",
        )
    return table


def _target(row: Row) -> str:
    if row.target is None:
        return "none"
    return f"{'≤' if row.smaller_is_better else '≥'} {row.target:g}"


def _document(results: list[Result], seconds: int) -> dict[str, object]:
    return {
        "machine": {
            "processors": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
        "seconds": seconds,
        "figures": [
            {
                "name": result.row.name,
                "title": result.row.title,
                "unit": result.row.unit,
                "ratio": result.ratio,
                "target": result.row.target,
                "smaller_is_better": result.row.smaller_is_better,
                "met": result.is_met,
                "rounds": [{**pair._asdict(), "ratio": pair.ratio} for pair in result.pairs],
            }
            for result in results
        ],
    }


if __name__ == "__main__":
    main()
