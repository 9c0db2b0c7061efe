"""Commands that list, show, watch, cancel and retry runs."""

import sys
from functools import partial
from uuid import UUID

import click
import msgspec
from rich.table import Table

from core.cli.client.api_client import Api
from core.cli.client.connection import Connection, connects
from core.cli.client.runtime import console, notes, run_to_the_end
from core.cli.client.schemas import Run, Runs, StartedRun
from core.cli.commands.analyses import show_end
from core.cli.output.progress_bars import run_bar
from core.cli.output.run_text import COLOURS, age_of, cell, ending_of, kind_of, step_of, whom_of
from core.cli.output.run_watcher import EXIT_CODES, attended

PATH = "/v1/runs"
PAGE_MAX = 100
STATUSES = click.Choice(("queued", "processing", "completed", "failed", "cancelled", "paused"))


class RunsGroup(click.Group):
    """Lists the runs if no subcommand is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, ["list", *args] if not args or is_option else args)


@click.group("runs", cls=RunsGroup)
def runs_group() -> None:
    """See what is under way and what has become of it; cancel it, try it again.

    Without a command it lists, as `oslira runs list` does.

    \b
    Examples:
      oslira runs
      oslira runs --status failed --limit 50
      oslira runs watch 5b1c7c0e-8a1e-4d8e-9f39-0a6d5c1e2b11
    """  # noqa: D301  (click reads the character)


@runs_group.command("list")
@click.option("--status", type=STATUSES, help="Only those that are so now.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per run.")
@connects
def list_command(connection: Connection, status: str | None, limit: int, as_json: bool) -> None:  # noqa: FBT001
    """List runs, the newest first."""

    async def work() -> list[Run]:
        async with connection.open() as api:
            return await _newest(api, status, limit)

    found = run_to_the_end(work())
    if as_json:
        for run in found:
            click.echo(msgspec.json.encode(run))
    elif found:
        console.print(_table(found))
    else:
        click.echo(
            "There are no such runs." if status else "There are no runs yet. Try: oslira analyze @name"
        )


@runs_group.command("show")
@click.argument("run_id", type=click.UUID)
@click.option("--json", "as_json", is_flag=True, help="Print the run as the API gives it.")
@connects
def show_command(connection: Connection, run_id: UUID, as_json: bool) -> None:  # noqa: FBT001
    """Show a run, and its result when it has one."""

    async def work() -> None:
        async with connection.open() as api:
            response = await api.send("GET", f"{PATH}/{run_id}")
            if as_json:
                click.echo(msgspec.json.format(response.content, indent=2))
                return
            run = api.decoded(response, Run)
            console.print(_table([run]))
            if run.status == "completed" and not run.is_bulk:
                await show_end(api, connection, run, as_json=False)
            elif run.is_ended:
                click.echo(ending_of(run))
            else:
                click.echo(f"{step_of(run)}. Watch it with: oslira runs watch {run_id}")

    run_to_the_end(work())


@runs_group.command("cancel")
@click.argument("run_id", type=click.UUID)
@connects
def cancel_command(connection: Connection, run_id: UUID) -> None:
    """Stop a run, wait until it has stopped, and say what was charged.

    A run that has ended already stays as it is. Exits 0 when it was cancelled, 1 when it had ended
    otherwise.
    """

    async def work() -> int:
        async with connection.open() as api:
            await api.send("POST", f"{PATH}/{run_id}/cancel")
            run = await attended(api, str(run_id), partial(run_bar, notes), asks=lambda: False)
            click.echo(ending_of(run))
            return 0 if run.status == "cancelled" else 1

    sys.exit(run_to_the_end(work()))


@runs_group.command("retry")
@click.argument("run_id", type=click.UUID)
@click.option("--json", "as_json", is_flag=True, help="Print the result as the API gives it.")
@connects
def retry_command(connection: Connection, run_id: UUID, as_json: bool) -> None:  # noqa: FBT001
    """Try a failed run again, and watch it.

    Exits 0 when it is completed, 1 when it failed again, 130 when it was cancelled.
    """

    async def work() -> int:
        async with connection.open() as api:
            again = await api.post(f"{PATH}/{run_id}/retry", StartedRun)
            return await _watch(api, connection, again.run_id, as_json=as_json)

    sys.exit(run_to_the_end(work()))


@runs_group.command("watch")
@click.argument("run_id", type=click.UUID)
@click.option("--json", "as_json", is_flag=True, help="Print the result as the API gives it.")
@connects
def watch_command(connection: Connection, run_id: UUID, as_json: bool) -> None:  # noqa: FBT001
    """Watch a run until it ends, then show its result.

    Ctrl-C offers to cancel it. Exits 0 when it is completed, 1 when it failed, 130 when it was cancelled.
    """

    async def work() -> int:
        async with connection.open() as api:
            return await _watch(api, connection, str(run_id), as_json=as_json)

    sys.exit(run_to_the_end(work()))


async def _watch(api: Api, connection: Connection, run_id: str, *, as_json: bool) -> int:
    run = await attended(api, run_id, partial(run_bar, notes))
    if not run.is_bulk:
        return await show_end(api, connection, run, as_json=as_json)
    click.echo(ending_of(run))
    return EXIT_CODES[run.status]


async def _newest(api: Api, status: str | None, limit: int) -> list[Run]:
    found: list[Run] = []
    cursor: str | None = None
    while len(found) < limit:
        page = await api.get(
            PATH, Runs, status=status, limit=min(limit - len(found), PAGE_MAX), cursor=cursor
        )
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _table(found: list[Run]) -> Table:
    table = Table()
    table.add_column("id", no_wrap=True, min_width=36)  # full length, so that it can be copied
    for name in ("kind", "whom", "status"):
        table.add_column(name)
    table.add_column("done", justify="right")
    table.add_column("credits", justify="right")
    table.add_column("outcome")
    table.add_column("age", justify="right")
    for run in found:
        table.add_row(
            cell(run.run_id),
            cell(kind_of(run)),
            cell(whom_of(run)),
            cell(run.status, COLOURS.get(run.status, "")),
            f"{run.progress} %",
            str(run.credits_charged if run.is_ended else run.credits_held),
            cell(run.outcome or ""),
            age_of(run.created_at),
        )
    return table
