"""Command that lists and exports leads."""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from uuid import UUID

import click
import msgspec
from rich.table import Table

from core.cli.client.api_client import Api
from core.cli.client.connection import Connection, connects
from core.cli.client.runtime import console, run_to_the_end
from core.cli.client.schemas import Answer
from core.cli.output.report import TIER_COLOURS
from core.cli.output.run_text import age_of, cell

PATH = "/v1/leads"
PAGE_MAX = 100
TIERS = click.Choice(("hot", "warm", "cool", "cold"))


class Lead(Answer, frozen=True, kw_only=True):
    username: str
    full_name: str = ""
    followers: int
    tier: str
    score: int
    niche: str = ""
    last_analysis_type: str
    last_analysed_at: datetime


class Leads(Answer, frozen=True, kw_only=True):
    items: list[Lead]
    next_cursor: str | None = None


@click.command("leads")
@click.option("--tier", type=TIERS, help="Only those: hot from 80 points, warm from 60, cool from 40.")
@click.option("--business", type=click.UUID, help="Only those of this business profile.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many to show."
)
@click.option(
    "--csv",
    "csv_path",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
    help="Write all of them to this file instead; - is the terminal.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per lead.")
@connects
def leads_command(
    connection: Connection,
    tier: str | None,
    business: UUID | None,
    limit: int,
    csv_path: Path | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """List who was analysed, the latest first.

    \b
    Examples:
      oslira leads --tier hot
      oslira leads --csv leads.csv
    """  # noqa: D301  (click reads the character)
    business_id = str(business) if business else None

    async def work() -> None:
        async with connection.open() as api:
            if csv_path is not None:
                await _export(api, csv_path, tier, business_id)
                return
            found = [lead async for lead in latest(api, limit, tier=tier, business_id=business_id)]
            _show(found, as_json=as_json)

    run_to_the_end(work())


async def latest(
    api: Api, leads_max: int, *, tier: str | None = None, business_id: str | None = None
) -> AsyncIterator[Lead]:
    """Requests further pages only while the caller iterates."""
    cursor: str | None = None
    seen = 0
    while seen < leads_max:
        limit = min(leads_max - seen, PAGE_MAX)
        page = await api.get(
            PATH, Leads, limit=limit, cursor=cursor, tier=tier, business_profile_id=business_id
        )
        for lead in page.items:
            yield lead
        seen += len(page.items)
        cursor = page.next_cursor
        if cursor is None:
            return


async def _export(api: Api, path: Path, tier: str | None, business_id: str | None) -> None:
    parameters = {"tier": tier, "business_profile_id": business_id}
    given = {name: value for name, value in parameters.items() if value is not None}
    response = await api.send("GET", f"{PATH}/export", parameters=given)
    with click.open_file(str(path), "wb") as file:
        file.write(response.content)
    if str(path) != "-":
        click.echo(f"Wrote {path}.", err=True)


def _show(found: list[Lead], *, as_json: bool) -> None:
    if as_json:
        for lead in found:
            click.echo(msgspec.json.encode(lead))
    elif found:
        console.print(leads_table(found))
    else:
        click.echo("There are no such leads yet. Try: oslira analyze @name")


def leads_table(found: list[Lead]) -> Table:
    table = Table("whom", "name", "tier")
    table.add_column("score", justify="right")
    table.add_column("niche")
    table.add_column("followers", justify="right")
    table.add_column("analysis")
    table.add_column("age", justify="right")
    for lead in found:
        table.add_row(
            cell(f"@{lead.username}"),
            cell(lead.full_name),
            cell(lead.tier, TIER_COLOURS.get(lead.tier, "")),
            str(lead.score),
            cell(lead.niche),
            f"{lead.followers:,}",
            cell(lead.last_analysis_type),
            age_of(lead.last_analysed_at),
        )
    return table
