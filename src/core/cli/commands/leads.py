"""Command that lists and exports leads."""

from pathlib import Path
from uuid import UUID

import click

from core.cli.client.api_client import Api, Json
from core.cli.client.connection import AS_JSON, uses_api
from core.cli.output.bulk_results import LEADS_TABLE, TIERS
from core.cli.output.renderer import show_items

PATH = "/v1/leads"


@click.command("leads")
@click.option(
    "--tier", type=click.Choice(TIERS), help="Only this tier: hot from 80 points, warm from 60, cool from 40."
)
@click.option("--business", type=click.UUID, help="Only leads of this business profile.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="Maximum number.")
@click.option(
    "--csv",
    "csv_path",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
    help="Write all leads to this CSV file instead; - is standard output.",
)
@AS_JSON
@uses_api
async def leads_command(
    api: Api, tier: str | None, business: UUID | None, limit: int, csv_path: Path | None, as_json: bool
) -> None:
    """List leads, most recently analysed first.

    \b
    Examples:
      oslira leads --tier hot
      oslira leads --csv leads.csv
    """
    query = {"tier": tier, "business_profile_id": str(business) if business else None}
    if csv_path is None:
        leads = [lead async for lead in api.items(PATH, Json, limit, **query)]
        show_items(leads, LEADS_TABLE, as_json=as_json, if_empty="No leads. Start with: oslira analyze @name")
        return
    response = await api.send("GET", f"{PATH}/export", query=query)
    with click.open_file(str(csv_path), "wb") as file:
        file.write(response.content)
    if str(csv_path) != "-":
        click.echo(f"Wrote {csv_path}.", err=True)
