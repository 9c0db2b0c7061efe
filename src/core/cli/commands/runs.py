"""Commands that list, show, watch, cancel and retry runs."""

from functools import partial
from uuid import UUID

import click
import msgspec

from core.cli.client.api_client import Api
from core.cli.client.connection import AS_JSON, uses_api
from core.cli.client.runtime import console, error_console
from core.cli.commands.analyses import show_result
from core.cli.output.progress_bars import run_bar
from core.cli.output.run_text import BULK, is_ended, outcome_text, runs_table, step_text
from core.cli.output.run_watcher import EXIT_CODES, watch_run
from features.runs.controllers.schemas import RunStartedResponse
from features.runs.domain.view import RunResponse

PATH = "/v1/runs"
STATUSES = click.Choice(("queued", "processing", "completed", "failed", "cancelled", "paused"))


class RunsGroup(click.Group):
    """Lists the runs if no subcommand is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, ["list", *args] if not args or is_option else args)


@click.group("runs", cls=RunsGroup)
def runs_group() -> None:
    """List, show, watch, cancel and retry runs.

    Without a subcommand it lists runs, like `oslira runs list`.

    \b
    Examples:
      oslira runs
      oslira runs --status failed --limit 50
      oslira runs watch 5b1c7c0e-8a1e-4d8e-9f39-0a6d5c1e2b11
    """


@runs_group.command("list")
@click.option("--status", type=STATUSES, help="Only runs with this status.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="Maximum number.")
@AS_JSON
@uses_api
async def list_command(api: Api, status: str | None, limit: int, as_json: bool) -> None:
    """List runs, newest first."""
    runs = [run async for run in api.items(PATH, RunResponse, limit, status=status)]
    if as_json:
        for run in runs:
            click.echo(msgspec.json.encode(run))
    elif runs:
        console.print(runs_table(runs))
    else:
        click.echo("No run has this status." if status else "No runs yet. Start one: oslira analyze @name")


@runs_group.command("show")
@click.argument("run_id", type=click.UUID)
@AS_JSON
@uses_api
async def show_command(api: Api, run_id: UUID, as_json: bool) -> None:
    """Show a run, and its result if it is completed."""
    response = await api.send("GET", f"{PATH}/{run_id}")
    if as_json:
        click.echo(msgspec.json.format(response.content, indent=2))
        return
    run = api.decode(response, RunResponse)
    console.print(runs_table([run]))
    if run.status == "completed" and run.kind != BULK:
        await show_result(api, run, as_json=False)
    elif is_ended(run):
        click.echo(outcome_text(run))
    else:
        click.echo(f"{step_text(run)}. Watch it with: oslira runs watch {run_id}")


@runs_group.command("cancel")
@click.argument("run_id", type=click.UUID)
@uses_api
async def cancel_command(api: Api, run_id: UUID) -> int:
    """Cancel a run, wait until it has stopped, and show the charge.

    A run that has already ended does not change. Exit codes: 0 cancelled, 1 ended otherwise.
    """
    await api.send("POST", f"{PATH}/{run_id}/cancel")
    run = await watch_run(api, str(run_id), partial(run_bar, error_console), confirm=lambda: False)
    click.echo(outcome_text(run))
    return 0 if run.status == "cancelled" else 1


@runs_group.command("retry")
@click.argument("run_id", type=click.UUID)
@AS_JSON
@uses_api
async def retry_command(api: Api, run_id: UUID, as_json: bool) -> int:
    """Start a failed run again, and watch it.

    Exit codes: 0 completed, 1 failed again, 130 cancelled.
    """
    started = await api.post(f"{PATH}/{run_id}/retry", RunStartedResponse)
    return await _watch(api, str(started.run_id), as_json=as_json)


@runs_group.command("watch")
@click.argument("run_id", type=click.UUID)
@AS_JSON
@uses_api
async def watch_command(api: Api, run_id: UUID, as_json: bool) -> int:
    """Watch a run until it ends, then show its result.

    Ctrl-C offers to cancel it. Exit codes: 0 completed, 1 failed, 130 cancelled.
    """
    return await _watch(api, str(run_id), as_json=as_json)


async def _watch(api: Api, run_id: str, *, as_json: bool) -> int:
    run = await watch_run(api, run_id, partial(run_bar, error_console))
    if run.kind != BULK:
        return await show_result(api, run, as_json=as_json)
    click.echo(outcome_text(run))
    return EXIT_CODES[run.status]
