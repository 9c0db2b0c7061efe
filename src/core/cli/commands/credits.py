import sys
from typing import Any

import click
import msgspec
from rich.table import Table

from core.cli.client.runtime import console, read_surroundings, run_to_the_end
from core.wiring.application import build
from features.credits.application.maintenance import CreditMaintenance


@click.group("credits")
def credits_group() -> None:
    """Keep the books."""


@credits_group.command("audit")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per finding.")
def audit_command(as_json: bool) -> None:  # noqa: FBT001
    """Check that balances, entries, lots and holds agree. Exits 1 on any difference."""
    place = read_surroundings()

    async def work() -> list[Any]:
        async with build(place) as application:
            return list(await application.get(CreditMaintenance).audit())

    findings = run_to_the_end(work())
    if as_json:
        for finding in findings:
            click.echo(msgspec.json.encode(finding))
    elif findings:
        table = Table("account", "finding", "expected", "found")
        for finding in findings:
            table.add_row(str(finding.account_id), finding.finding, str(finding.expected), str(finding.found))
        console.print(table)
    else:
        click.echo("The books agree: balances = entries = lots, and the holds match.")
    sys.exit(1 if findings else 0)


@credits_group.command("expire")
def expire_command() -> None:
    """Write off credits whose time is over. Repeatable."""
    place = read_surroundings()

    async def work() -> tuple[int, int]:
        async with build(place) as application:
            return await application.get(CreditMaintenance).expire()

    accounts, credits_expired = run_to_the_end(work())
    click.echo(f"{credits_expired} credits of {accounts} accounts expired.")
