"""Results of a bulk run by tier and outcome, and as a CSV file."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import click
from rich.table import Table

from core.cli.client.api_client import Api
from core.cli.client.runtime import console
from core.cli.client.schemas import Answer, Run
from core.cli.commands.leads import Lead, latest, leads_table
from core.cli.output.run_text import cell, counted, settlement_of
from shared.http.csv_export import csv_line
from shared.text import plain

PAGE_MAX = 100
LEADS_SEEN_MAX = 10_000
BEST_SHOWN_MAX = 10
TIERS = ("hot", "warm", "cool", "cold")
COLUMNS = ("username", "status", "outcome", "tier", "score", "niche", "followers", "full_name")


class Item(Answer, frozen=True, kw_only=True):
    username: str
    status: str
    outcome: str | None = None


class Items(Answer, frozen=True, kw_only=True):
    items: list[Item]
    next_cursor: str | None = None


async def show_results(api: Api, run: Run, business_id: str, output: Path | None) -> None:
    items = [item async for item in _items(api, run.run_id)]
    leads = await _leads(api, business_id, {item.username for item in items if item.status == "completed"})
    best = sorted(leads.values(), key=lambda lead: -lead.score)[:BEST_SHOWN_MAX]
    if best:
        console.print(leads_table(best))
    console.print(_counts(items, leads))
    click.echo(f"{run.status.capitalize()}. {settlement_of(run)}")
    if output is not None:
        with click.open_file(str(output), "w", encoding="utf-8") as file:
            file.write(_spreadsheet(items, leads))
        click.echo(f"Wrote {counted(len(items), 'row')} to {output}.", err=True)


async def _items(api: Api, run_id: str) -> AsyncIterator[Item]:
    cursor: str | None = None
    while True:
        page = await api.get(f"/v1/analyses/bulk/{run_id}", Items, limit=PAGE_MAX, cursor=cursor)
        for item in page.items:
            yield item
        cursor = page.next_cursor
        if cursor is None:
            return


async def _leads(api: Api, business_id: str, usernames: set[str]) -> dict[str, Lead]:
    """Leads by username. The run has just updated them, so they are on the first pages."""
    found: dict[str, Lead] = {}
    if not usernames:
        return found
    async for lead in latest(api, LEADS_SEEN_MAX, business_id=business_id):
        if lead.username in usernames:
            found[lead.username] = lead
        if len(found) == len(usernames):
            break
    return found


def _counts(items: list[Item], leads: dict[str, Lead]) -> Table:
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


def _spreadsheet(items: list[Item], leads: dict[str, Lead]) -> str:
    return "".join(map(csv_line, [COLUMNS, *(_row(item, leads.get(item.username)) for item in items)]))


def _row(item: Item, lead: Lead | None) -> tuple[object, ...]:
    known = (plain(item.username), plain(item.status), plain(item.outcome or ""))
    if lead is None:
        return (*known, "", "", "", "", "")
    niche, name = plain(lead.niche), plain(lead.full_name)
    return (*known, plain(lead.tier), lead.score, niche, lead.followers, name)
