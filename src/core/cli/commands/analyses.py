"""Command that runs one analysis and shows its report."""

from functools import partial
from typing import Any
from uuid import UUID

import click
import msgspec

from core.cli.client.api_client import Api, ApiProblem
from core.cli.client.businesses import choose_business
from core.cli.client.connection import AS_JSON, uses_api
from core.cli.client.runtime import console, error_console
from core.cli.output.progress_bars import run_bar
from core.cli.output.quotes import quote_table
from core.cli.output.report import analysis_report
from core.cli.output.run_text import outcome_text, subject_of
from core.cli.output.run_watcher import EXIT_CODES, watch_run
from features.analysis.controllers.analysis_schemas import AnalysisResponse
from features.analysis.controllers.start_schemas import QuoteResponse, StartedResponse
from features.analysis.domain.errors import UsernameInvalid
from features.analysis.domain.profile.profile import username_of
from features.costs.controllers.schemas import RunCostsResponse
from features.runs.domain.view import RunResponse
from shared.text import plain

PATH = "/v1/analyses"
TYPES = click.Choice(("light", "deep", "xray"))
BUSINESS = click.option("--business", type=click.UUID, help="Business profile (default: the only one).")


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
    help="light: score and reasons. deep: also messages and personality. xray: also motives and offers.",
)
@BUSINESS
@click.option("--fresh", is_flag=True, help="Fetch the profile again, even if it was fetched recently.")
@click.option("--dry-run", is_flag=True, help="Show the price and start nothing.")
@AS_JSON
@uses_api
async def analyze_command(
    api: Api,
    username: str,
    analysis_type: str,
    business: UUID | None,
    fresh: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Analyse a profile for a business and show the report.

    USERNAME is an Instagram username, with or without @, or the URL of a profile. The command needs a running
    server: start one with `oslira serve`. A server on your own machine needs no account and no token, and
    gets an example business profile if it has none.

    Ctrl-C offers to cancel the run and shows what is charged. Exit codes: 0 completed, 1 failed,
    130 cancelled.

    \b
    Examples:
      oslira analyze @slow.kitchen
      oslira analyze https://www.instagram.com/slow.kitchen/ --type light --json
      oslira analyze slow.kitchen --type xray --dry-run
      OSLIRA_TOKEN=osl_live_... oslira analyze slow.kitchen --url https://api.example.com
    """
    request = {
        "username": username,
        "type": analysis_type,
        "business_profile_id": await choose_business(api, str(business) if business else None),
        "is_fresh": fresh,
    }
    if dry_run:
        return await _show_quote(api, request, as_json=as_json)
    started = await api.post(PATH, StartedResponse, request)
    run = await watch_run(api, str(started.run_id), partial(run_bar, error_console))
    return await show_result(api, run, as_json=as_json)


async def show_result(api: Api, run: RunResponse, *, as_json: bool) -> int:
    """Shows the report, or the reason for its absence and the charge. Returns the exit code."""
    if run.status != "completed":
        click.echo(f"The analysis of {subject_of(run)}: {outcome_text(run)}", err=True)
        if as_json:
            click.echo(msgspec.json.encode(run))
        return EXIT_CODES[run.status]
    response = await api.send("GET", run.result_url or f"{PATH}/{run.run_id}")
    if as_json:
        click.echo(msgspec.json.format(response.content, indent=2))
    else:
        costs = await _find_costs(api, str(run.run_id))
        console.print(analysis_report(api.decode(response, AnalysisResponse), run, costs))
    return 0


async def _find_costs(api: Api, run_id: str) -> RunCostsResponse | None:
    """Returns None without an operator token, because only operators may read costs."""
    if api.operator_token is None:
        return None
    try:
        return await api.get(f"/v1/admin/runs/{run_id}/costs", RunCostsResponse)
    except ApiProblem:
        return None


async def _show_quote(api: Api, request: dict[str, Any], *, as_json: bool) -> int:
    response = await api.send("POST", PATH, body=request, query={"dry_run": "true"})
    if as_json:
        click.echo(msgspec.json.format(response.content, indent=2))
    else:
        console.print(quote_table(api.decode(response, QuoteResponse), request))
    return 0
