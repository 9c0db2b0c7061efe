"""Command that runs one analysis and shows its report."""

import sys
from functools import partial
from typing import Any
from uuid import UUID

import click
import msgspec

from core.cli.client.api_client import Api, ApiProblem
from core.cli.client.businesses import chosen_business
from core.cli.client.connection import Connection, connects
from core.cli.client.runtime import console, notes, run_to_the_end
from core.cli.client.schemas import Run, RunCosts, StartedRun
from core.cli.output.progress_bars import run_bar
from core.cli.output.quotes import Quote, quote_table
from core.cli.output.report import Analysis, report_of
from core.cli.output.run_text import ending_of, whom_of
from core.cli.output.run_watcher import EXIT_CODES, attended
from features.analysis.domain.errors import UsernameInvalid
from features.analysis.domain.profile.profile import username_of
from shared.text import plain

TYPES = click.Choice(("light", "deep", "xray"))
START = "/v1/analyses"


def _username(_: click.Context, __: click.Parameter, text: str) -> str:
    try:
        return username_of(text)
    except UsernameInvalid as error:
        raise click.BadParameter(plain(str(error))) from None


@click.command("analyze")
@click.argument("username", callback=_username)
@click.option(
    "--type",
    "analysis_type",
    type=TYPES,
    default="deep",
    show_default=True,
    help="light scores, deep adds messages and personality, xray adds motives and what could be sold.",
)
@click.option(
    "--business", type=click.UUID, help="For which business profile (default: the only one there is)."
)
@click.option("--fresh", is_flag=True, help="Look at the profile anew, even if it was looked at lately.")
@click.option("--dry-run", is_flag=True, help="Only say what it would cost; nothing is started or charged.")
@click.option("--json", "as_json", is_flag=True, help="Print the analysis as the API gives it.")
@connects
def analyze_command(
    connection: Connection,
    username: str,
    analysis_type: str,
    business: UUID | None,
    fresh: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
) -> None:
    """Analyse a profile for a business and show what was found.

    USERNAME is a name, with or without @, or the address of a profile. A server has to run: start one with
    `oslira serve`. On your own machine you need neither account nor token, and where there is no business
    profile yet an example is made.

    Ctrl-C offers to cancel; what that costs depends on how far it has come, and is said. Exits 0 when the
    analysis was delivered, 1 when it failed, 130 when it was cancelled.

    \b
    Examples:
      oslira analyze @slow.kitchen
      oslira analyze https://www.instagram.com/slow.kitchen/ --type light --json
      oslira analyze slow.kitchen --type xray --dry-run
      OSLIRA_TOKEN=osl_live_... oslira analyze slow.kitchen --url https://api.example.com
    """  # noqa: D301  (click reads the character)

    async def work() -> int:
        async with connection.open() as api:
            business_id = await chosen_business(
                api, str(business) if business else None, may_create=connection.is_local
            )
            asked = {
                "username": username,
                "type": analysis_type,
                "business_profile_id": business_id,
                "is_fresh": fresh,
            }
            if dry_run:
                return await _quote(api, asked, as_json=as_json)
            begun = await api.post(START, StartedRun, asked)
            run = await attended(api, begun.run_id, partial(run_bar, notes))
            return await show_end(api, connection, run, as_json=as_json)

    sys.exit(run_to_the_end(work()))


async def show_end(api: Api, connection: Connection, run: Run, *, as_json: bool) -> int:
    """Shows the result, or the reason for its absence and the charge. Returns the exit code."""
    if run.status != "completed":
        click.echo(f"The analysis of {whom_of(run)}: {ending_of(run)}", err=True)
        if as_json:
            click.echo(msgspec.json.encode(run))
        return EXIT_CODES[run.status]
    response = await api.send("GET", run.result_url or f"{START}/{run.run_id}")
    if as_json:
        click.echo(msgspec.json.format(response.content, indent=2))
    else:
        costs = await costs_of(connection, run.run_id)
        console.print(report_of(api.decoded(response, Analysis), run, costs))
    return 0


async def costs_of(connection: Connection, run_id: str) -> RunCosts | None:
    """Returns None without an operator token, because only operators may read costs."""
    if not connection.is_local:
        return None
    async with connection.open_as_operator() as operator:
        try:
            return await operator.get(f"/v1/admin/runs/{run_id}/costs", RunCosts)
        except ApiProblem:
            return None


async def _quote(api: Api, asked: dict[str, Any], *, as_json: bool) -> int:
    response = await api.send("POST", START, body=asked, parameters={"dry_run": "true"})
    if as_json:
        click.echo(msgspec.json.format(response.content, indent=2))
        return 0
    console.print(quote_table(api.decoded(response, Quote), asked))
    return 0
