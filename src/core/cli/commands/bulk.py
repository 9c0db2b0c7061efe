"""Command that analyses many profiles from a file."""

from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

import click
from rich.table import Table

from core.cli.client.api_client import Api
from core.cli.client.businesses import choose_business
from core.cli.client.connection import uses_api
from core.cli.client.runtime import error_console
from core.cli.commands.analyses import BUSINESS, TYPES
from core.cli.output.bulk_results import show_results
from core.cli.output.progress_bars import bulk_bars
from core.cli.output.renderer import cell, counted
from core.cli.output.run_watcher import EXIT_CODES, watch_run
from core.cli.output.usernames import RejectedRow, Usernames, read_usernames
from features.analysis.controllers.bulk_schemas import BulkQuoteResponse, BulkStartedResponse
from shared.text import plain

PATH = "/v1/analyses/bulk"
REJECTED_SHOWN_MAX = 20
PAUSED = (
    "Paused: not enough credits. The run continues when credits are added (within 7 days)."
    " Buy some with: oslira billing buy small"
)


@click.command("bulk")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--type", "analysis_type", type=TYPES, default="light", show_default=True, help="Type of analysis."
)
@BUSINESS
@click.option("--fresh", is_flag=True, help="Fetch the profiles again, even if they were fetched recently.")
@click.option("--column", help="Column with the usernames: its header, or its number from 1.")
@click.option("--yes", is_flag=True, help="Start without confirmation.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Also write the results to this CSV file.",
)
@uses_api
async def bulk_command(
    api: Api,
    file: BinaryIO,
    analysis_type: str,
    business: UUID | None,
    fresh: bool,
    column: str | None,
    yes: bool,
    output: Path | None,
) -> int:
    """Analyse every profile listed in FILE; - is standard input.

    FILE is a CSV file with a header row, or a list with one username or profile URL per line. In a CSV file
    the usernames are read from the column named username, instagram, handle or profile url, or from --column.
    Rows without a valid username are shown and skipped. Each analysis is charged separately; failed ones are
    refunded. If the credits run out, the run pauses and continues when credits are added, within 7 days.

    Ctrl-C offers to cancel the rest. Exit codes: 0 completed, 1 failed, 2 no column of FILE matches,
    130 cancelled.

    \b
    Examples:
      oslira bulk people.csv
      oslira bulk people.csv --column "IG account"
      oslira bulk people.csv --type deep --yes --output leads.csv
      cut -f1 list.tsv | oslira bulk - --yes
    """
    usernames = _read_usernames(file, column)
    business_id = await choose_business(api, str(business) if business else None)
    request = {
        "usernames": usernames.accepted,
        "type": analysis_type,
        "business_profile_id": business_id,
        "is_fresh": fresh,
    }
    quote = await api.post(PATH, BulkQuoteResponse, request, dry_run="true")
    _show_quote(quote, usernames.samples)
    if not yes:
        click.confirm("Start?", abort=True, err=True)
    started = await api.post(PATH, BulkStartedResponse, request)
    bars = partial(bulk_bars, error_console, quote.accepted_count, PAUSED)
    run = await watch_run(api, str(started.run_id), bars)
    await show_results(api, run, business_id, output)
    return EXIT_CODES[run.status]


def _read_usernames(file: BinaryIO, column: str | None) -> Usernames:
    usernames = read_usernames(file.read(), column)
    if usernames.header:
        click.echo(f"Usernames are read from the column {plain(usernames.header)[:60]}.", err=True)
    _show_rejected(usernames.rejected)
    if not usernames.accepted:
        raise click.ClickException("The file contains no valid username.")
    return usernames


def _show_rejected(rows: list[RejectedRow]) -> None:
    if not rows:
        return
    table = Table("line", "text", "reason", title=f"{counted(len(rows), 'row')} skipped")
    for row in rows[:REJECTED_SHOWN_MAX]:
        table.add_row(str(row.line), cell(row.text), cell(row.reason))
    if len(rows) > REJECTED_SHOWN_MAX:
        table.add_row("...", "", f"and {len(rows) - REJECTED_SHOWN_MAX:,} more")
    error_console.print(table)


def _show_quote(quote: BulkQuoteResponse, samples: list[str]) -> None:
    _show_rejected([RejectedRow(row.position, row.username, row.reason) for row in quote.rejected])
    click.echo(f"The first usernames: {', '.join(f'@{name}' for name in samples)}.", err=True)
    click.echo(
        f"{counted(quote.accepted_count, 'profile')}, at most {counted(quote.credits_estimate, 'credit')};"
        f" {quote.credits_available:,} available.",
        err=True,
    )
    if quote.credits_estimate > quote.credits_available:
        click.echo(
            "The run pauses when the credits run out and continues when credits are added (within 7 days).",
            err=True,
        )
