import sys

import click
import msgspec
from rich.table import Table

from core.commands.connection import Connection, connects
from core.commands.cron_answers import Audit
from core.commands.surroundings import console, run_to_the_end
from core.commands.words import cell


@click.command("audit")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as the API gives them.")
@connects
def audit_command(connection: Connection, as_json: bool) -> None:  # noqa: FBT001
    """Have the server compare balances, entries, lots and holds. For operators; exits 1 on any difference."""

    async def work() -> Audit:
        async with connection.open_for_operators() as api:
            return await api.post("/v1/admin/audits", Audit)

    audit = run_to_the_end(work())
    if as_json:
        click.echo(msgspec.json.encode(audit))
    elif audit.ok:
        click.echo("The books agree: balances = entries = lots, and the holds match.")
    else:
        table = Table("account", "finding", "expected", "found")
        for one in audit.findings:
            table.add_row(cell(one.account_id), cell(one.finding), str(one.expected), str(one.found))
        console.print(table)
    sys.exit(0 if audit.ok else 1)
