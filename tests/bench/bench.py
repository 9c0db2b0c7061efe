"""Benchmark of Oslira against floors measured in the same run. Start it with scripts/bench."""

import asyncio
import os
import platform
import signal
import sys
from pathlib import Path

import click
import msgspec
import uvloop
from place import BenchFailed, ProgramMissing, open_place
from rich.console import Console
from rich.table import Table
from rounds import Result, Row, measure
from rows import ROWS

FAILED = 2  # 1 is for a missed target


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", type=click.Choice([row.name for row in ROWS]), multiple=True, help="Repeatable.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--seconds", type=click.IntRange(1), default=3, show_default=True, help="Of each half round.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write every round.")
def main(only: tuple[str, ...], rounds: int, seconds: int, file: Path | None) -> None:
    """Ratios of what Oslira does to what the same machine can do at the same time.

    Subject and floor are measured in turns, round by round; a figure is the median of the rounds'
    ratios. Figures whose program is not installed are named and left out. Exits 1 when a target is missed,
    2 when there is no figure.
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
    # A file or a pipe has no terminal width.
    Console(width=None if sys.stdout.isatty() else 140).print(_table(results))
    if file:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(_document(results, seconds))) + b"\n")
    sys.exit(0 if all(result.is_met for result in results) else 1)


async def _measure_all(rows: list[Row], rounds: int, seconds: int) -> list[Result]:
    # SIGTERM acts like Ctrl-C, so that all started programs are stopped.
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    console = Console(stderr=True)
    with console.status("Starting PostgreSQL") as status:
        tell = status.update if console.is_terminal else console.print
        async with open_place() as place:
            results: list[Result] = []
            for row in rows:
                try:
                    results.append(await measure(row, place, rounds=rounds, seconds=seconds, tell=tell))
                except ProgramMissing as missing:
                    console.print(f"{row.title}: not measured. {missing}")
    if not results:
        raise BenchFailed("Nothing was measured.")
    return results


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
