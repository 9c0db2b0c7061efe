"""Results of a bulk run by tier and outcome, and as a CSV file."""

from collections import Counter
from pathlib import Path

import click
import msgspec
from rich.table import Table

from core.cli.client.api_client import Api
from core.cli.client.runtime import console
from core.cli.output.renderer import cell, counted, items_table
from core.cli.output.run_text import charge_text
from features.analysis.controllers.bulk_schemas import BulkItemResponse
from features.leads.domain.leads import Lead
from features.runs.domain.view import RunResponse
from shared.http.csv_export import csv_line
from shared.text import plain

ITEMS_MAX = 1_000_000
LEADS_MAX = 10_000
BEST_SHOWN_MAX = 10
TIERS = ("hot", "warm", "cool", "cold")
ITEM_COLUMNS = ("username", "status", "outcome")
LEAD_COLUMNS = ("tier", "score", "niche", "followers", "full_name")
LEADS_TABLE = (
    *("username", "full_name", "tier", "score", "niche", "followers"),
    *("last_analysis_type", "last_analysed_at"),
)


async def show_results(api: Api, run: RunResponse, business_id: str, output: Path | None) -> None:
    path = f"/v1/analyses/bulk/{run.run_id}"
    items = [item async for item in api.items(path, BulkItemResponse, ITEMS_MAX)]
    leads = await _find_leads(
        api, business_id, {item.username for item in items if item.status == "completed"}
    )
    best = sorted(leads.values(), key=lambda lead: -lead.score)[:BEST_SHOWN_MAX]
    if best:
        console.print(items_table(map(msgspec.to_builtins, best), LEADS_TABLE))
    console.print(_counts_table(items, leads))
    click.echo(f"{run.status.capitalize()}. {charge_text(run)}")
    if output is not None:
        with click.open_file(str(output), "w", encoding="utf-8") as file:
            file.write(_csv_text(items, leads))
        click.echo(f"Wrote {counted(len(items), 'row')} to {output}.", err=True)


async def _find_leads(api: Api, business_id: str, usernames: set[str]) -> dict[str, Lead]:
    """Leads by username. The run has just updated them, so they are on the first pages."""
    found: dict[str, Lead] = {}
    if not usernames:
        return found
    async for lead in api.items("/v1/leads", Lead, LEADS_MAX, business_profile_id=business_id):
        if lead.username in usernames:
            found[lead.username] = lead
        if len(found) == len(usernames):
            break
    return found


def _counts_table(items: list[BulkItemResponse], leads: dict[str, Lead]) -> Table:
    tiers = Counter(lead.tier for lead in leads.values())
    table = Table("result", title=counted(len(items), "profile"), title_justify="left")
    table.add_column("profiles", justify="right")
    table.add_column("credits")
    for tier in TIERS:
        table.add_row(tier, str(tiers[tier]), "charged")
    others = Counter(item.outcome or item.status for item in items if item.status != "completed")
    for outcome, count in sorted(others.items()):
        table.add_row(cell(outcome.replace("_", " ")), str(count), "by the refund policy")
    return table


def _csv_text(items: list[BulkItemResponse], leads: dict[str, Lead]) -> str:
    rows = ((*_cells(item, ITEM_COLUMNS), *_cells(leads.get(item.username), LEAD_COLUMNS)) for item in items)
    return "".join(map(csv_line, [(*ITEM_COLUMNS, *LEAD_COLUMNS), *rows]))


def _cells(struct: BulkItemResponse | Lead | None, columns: tuple[str, ...]) -> tuple[object, ...]:
    values = (getattr(struct, column, None) for column in columns)
    return tuple(
        plain(value) if isinstance(value, str) else "" if value is None else value for value in values
    )
