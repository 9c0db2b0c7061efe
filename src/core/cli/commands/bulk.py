"""Command that analyses many profiles from a file."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

import click
from rich.table import Table

from core.cli.client.businesses import chosen_business
from core.cli.client.connection import Connection, connects
from core.cli.client.runtime import notes, run_to_the_end
from core.cli.client.schemas import Answer, StartedRun
from core.cli.commands.analyses import TYPES
from core.cli.output.bulk_results import show_results
from core.cli.output.progress_bars import bulk_bars
from core.cli.output.run_text import cell, counted
from core.cli.output.run_watcher import EXIT_CODES, Show, attended
from core.cli.output.usernames import RejectedRow, Usernames, read_usernames
from shared.text import plain

PATH = "/v1/analyses/bulk"
REJECTED_SHOWN_MAX = 20


class Rejection(Answer, frozen=True, kw_only=True):
    position: int
    username: str
    reason: str


class BulkQuote(Answer, frozen=True, kw_only=True):
    accepted_count: int
    rejected: tuple[Rejection, ...] = ()
    credits_estimate: int
    credits_available: int


@click.command("bulk")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--type", "analysis_type", type=TYPES, default="light", show_default=True, help="For each of them."
)
@click.option(
    "--business", type=click.UUID, help="For which business profile (default: the only one there is)."
)
@click.option("--fresh", is_flag=True, help="Look at the profiles anew, even if they were looked at lately.")
@click.option("--column", help="The column with the usernames: its header, or its number from 1.")
@click.option("--yes", is_flag=True, help="Do not ask before it costs something.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the leads to this CSV file as well.",
)
@connects
def bulk_command(
    connection: Connection,
    file: BinaryIO,
    analysis_type: str,
    business: UUID | None,
    fresh: bool,  # noqa: FBT001
    column: str | None,
    yes: bool,  # noqa: FBT001
    output: Path | None,
) -> None:
    """Analyse everybody who is named in FILE; - reads what is typed or piped in.

    FILE is a CSV with a header row, or a list with one name or address a line. Of a CSV the column that is
    called username, instagram, handle or profile url is read, or the one that --column names. Rows without a
    valid username are shown and not sent. Each analysis is paid for by itself: one that fails is returned.
    When credits run out it pauses, and goes on by itself once there are more, within 7 days.

    Ctrl-C offers to cancel what is left. Exits 0 when it came to its end, 1 when it failed, 2 when no column
    of FILE fits, 130 when it was cancelled.

    \b
    Examples:
      oslira bulk people.csv
      oslira bulk people.csv --column "IG account"
      oslira bulk people.csv --type deep --yes --output leads.csv
      cut -f1 list.tsv | oslira bulk - --yes
    """  # noqa: D301  (click reads the character)
    names = read_usernames(file.read(), column)
    _show_reading(names)
    if not names.accepted:
        raise click.ClickException("There is nobody to analyse in this file.")

    async def work() -> int:
        async with connection.open() as api:
            business_id = await chosen_business(
                api, str(business) if business else None, may_create=connection.is_local
            )
            asked = {
                "usernames": names.accepted,
                "type": analysis_type,
                "business_profile_id": business_id,
                "is_fresh": fresh,
            }
            quote = await api.post(PATH, BulkQuote, asked, dry_run="true")
            _confirm(quote, names.samples, is_sure=yes)
            begun = await api.post(PATH, StartedRun, asked)
            run = await attended(api, begun.run_id, _bars(connection, quote.accepted_count))
            await show_results(api, run, business_id, output)
            return EXIT_CODES[run.status]

    sys.exit(run_to_the_end(work()))


def _bars(connection: Connection, items_count: int) -> Callable[[], AbstractContextManager[Show]]:
    hint = (
        "As operator: POST /v1/admin/accounts/ACCOUNT/credits/grants, see the documentation at"
        f" {connection.url}/schema"
        if connection.is_local
        else "Buy some, or ask whoever runs this server."
    )
    on_pause = f"Paused: there are too few credits. It goes on by itself once there are more. {hint}"
    return partial(bulk_bars, notes, items_count, on_pause)


def _show_reading(names: Usernames) -> None:
    if names.header:
        click.echo(f"Usernames are read from the column {plain(names.header)[:60]}.", err=True)
    _show_rejected(names.rejected)


def _show_rejected(rows: list[RejectedRow]) -> None:
    if not rows:
        return
    table = Table("line", "text", "left out because", title=f"{counted(len(rows), 'row')} left out")
    for row in rows[:REJECTED_SHOWN_MAX]:
        table.add_row(str(row.line), cell(row.text), cell(row.reason))
    if len(rows) > REJECTED_SHOWN_MAX:
        table.add_row("...", "", f"and {len(rows) - REJECTED_SHOWN_MAX:,} more")
    notes.print(table)


def _confirm(quote: BulkQuote, samples: list[str], *, is_sure: bool) -> None:
    """Shows the maximum price and asks for confirmation. Aborts the command if it is declined."""
    _show_rejected([RejectedRow(row.position, row.username, row.reason) for row in quote.rejected])
    click.echo(f"The first usernames: {', '.join(f'@{name}' for name in samples)}.", err=True)
    click.echo(
        f"{counted(quote.accepted_count, 'profile')}, at most {counted(quote.credits_estimate, 'credit')};"
        f" you have {quote.credits_available:,}.",
        err=True,
    )
    if quote.credits_estimate > quote.credits_available:
        click.echo(
            "It will pause when they are used up, and go on once there are more (within 7 days).", err=True
        )
    if not is_sure:
        click.confirm("Begin?", abort=True, err=True)
