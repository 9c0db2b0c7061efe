"""Many analyses at once, from a file."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

import click
from rich.table import Table

from core.commands.analyses import TYPES
from core.commands.answers import Answer, Balance
from core.commands.bars import bulk_bars
from core.commands.bulk_results import show_results
from core.commands.businesses import chosen_business
from core.commands.client import Api
from core.commands.connection import Connection, connects
from core.commands.surroundings import notes, run_to_the_end
from core.commands.usernames import RejectedRow, Usernames, read_usernames
from core.commands.watching import EXIT_CODES, Show, attended
from core.commands.words import cell, counted

PATH = "/v1/analyses/bulk"
REJECTED_SHOWN_MAX = 20


class Rejection(Answer, frozen=True, kw_only=True):
    position: int = 0
    text: str = ""
    reason: str = ""


class BulkBegun(Answer, frozen=True, kw_only=True):
    run_id: str
    rejected: tuple[Rejection, ...] = ()


class Quote(Answer, frozen=True, kw_only=True):
    credits_cost: int


@click.command("bulk")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--type", "analysis_type", type=TYPES, default="light", show_default=True, help="For each of them."
)
@click.option(
    "--business", type=click.UUID, help="For which business profile (default: the only one there is)."
)
@click.option("--fresh", is_flag=True, help="Look at the profiles anew, even if they were looked at lately.")
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
    yes: bool,  # noqa: FBT001
    output: Path | None,
) -> None:
    """Analyse everybody who is named in FILE; - reads what is typed or piped in.

    FILE is a CSV with a column `username`, or a list with one name or address a line. Rows that name nobody
    are shown and left out. Each analysis is paid for by itself: one that fails is returned. When credits run
    out it pauses, and goes on by itself once there are more.

    Ctrl-C offers to cancel what is left. Exits 0 when it came to its end, 1 when it failed, 130 when it was
    cancelled.

    \b
    Examples:
      oslira bulk people.csv
      oslira bulk people.csv --type deep --yes --output leads.csv
      cut -f1 list.tsv | oslira bulk - --yes
    """  # noqa: D301  (click reads the character)
    names = read_usernames(file.read())
    _show_reading(names)
    if not names.accepted:
        raise click.ClickException("There is nobody to analyse in this file.")

    async def work() -> int:
        async with connection.open() as api:
            business_id = await chosen_business(
                api, str(business) if business else None, may_create=connection.is_local
            )
            await _confirmed(api, names.accepted, analysis_type, business_id, is_sure=yes)
            asked = {
                "usernames": names.accepted,
                "type": analysis_type,
                "business_profile_id": business_id,
                "is_fresh": fresh,
            }
            begun = await api.post(PATH, BulkBegun, asked)
            _show_rejected([RejectedRow(row.position, row.text, row.reason) for row in begun.rejected])
            items_count = len(names.accepted) - len(begun.rejected)
            run = await attended(api, begun.run_id, _bars(connection, items_count))
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
        notes.print(f"The first row names columns; people are in {names.header}.", markup=False)
    _show_rejected(names.rejected)
    notes.print(f"{counted(len(names.accepted), 'profile')} to analyse.", markup=False)


def _show_rejected(rows: list[RejectedRow]) -> None:
    if not rows:
        return
    table = Table("line", "text", "left out because", title=f"{counted(len(rows), 'row')} left out")
    for row in rows[:REJECTED_SHOWN_MAX]:
        table.add_row(str(row.line), cell(row.text), cell(row.reason))
    if len(rows) > REJECTED_SHOWN_MAX:
        table.add_row("...", "", f"and {len(rows) - REJECTED_SHOWN_MAX:,} more")
    notes.print(table)


async def _confirmed(
    api: Api, names: list[str], analysis_type: str, business_id: str, *, is_sure: bool
) -> None:
    """Returns when it may cost what it will at most."""
    asked = {"username": names[0], "type": analysis_type, "business_profile_id": business_id}
    quote = await api.post("/v1/analyses", Quote, asked, dry_run="true")
    balance = await api.get("/v1/credits/balance", Balance)
    cost = quote.credits_cost * len(names)
    notes.print(
        f"{analysis_type.capitalize()}, {counted(quote.credits_cost, 'credit')} each: at most"
        f" {counted(cost, 'credit')}; {counted(balance.credits_available, 'credit')} are there.",
        markup=False,
    )
    if cost > balance.credits_available:
        notes.print("It will pause when they are used up, and go on once there are more.")
    if not is_sure:
        click.confirm("Begin?", abort=True, err=True)
