"""Commands that list cron jobs, run them now and show their history."""

import asyncio
import sys

import click
import msgspec
from rich.table import Table

from core.cli.client.api_client import Api
from core.cli.client.connection import Connection, connects
from core.cli.client.cron_schemas import CronJob, CronJobs, CronRun, CronRuns
from core.cli.client.runtime import console, notes, run_to_the_end
from core.cli.output.run_text import cell

PATH = "/v1/admin/cron"
LOOK_INTERVAL_S = 0.5
COLOURS = {"completed": "green", "failed": "red", "running": "yellow"}


@click.group("cron")
def cron_group() -> None:
    """See what is done by the clock and what became of it; have it done now. For operators.

    \b
    Examples:
      oslira cron list
      oslira cron run daily-cleanup --dry-run --wait
      oslira cron history renewal-sweep
    """  # noqa: D301  (click reads the character)


@cron_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per job.")
@connects
def list_command(connection: Connection, as_json: bool) -> None:  # noqa: FBT001
    """List the jobs: when each is due, and how the last one went."""

    async def work() -> list[CronJob]:
        async with connection.open_for_operators() as api:
            return (await api.get(PATH, CronJobs)).items

    jobs = run_to_the_end(work())
    if as_json:
        _print_json(jobs)
        return
    table = Table("job", "schedule (UTC)", "what it is", "next due", "last", "counted")
    for job in jobs:
        last = job.last_run
        table.add_row(
            cell(job.name),
            cell(job.schedule),
            cell(job.title),
            f"{job.next_due_at:%Y-%m-%d %H:%M}",
            cell(last.status, COLOURS.get(last.status, "")) if last else "never",
            cell(_counted(last)) if last else "",
        )
    console.print(table)


@cron_group.command("run")
@click.argument("job")
@click.option("--dry-run", is_flag=True, help="Count what it would do, and change nothing.")
@click.option("--wait", is_flag=True, help="Wait until it has ended; exits 1 when it failed.")
@click.option("--json", "as_json", is_flag=True, help="Print the run as the API gives it.")
@connects
def run_command(connection: Connection, job: str, dry_run: bool, wait: bool, as_json: bool) -> None:  # noqa: FBT001
    """Have a job carried out now."""

    async def work() -> CronRun:
        async with connection.open_for_operators() as api:
            run = await api.post(f"{PATH}/{job}/run", CronRun, {"dry_run": dry_run})
            return await _ended(api, run) if wait else run

    run = run_to_the_end(work())
    if as_json:
        _print_json([run])
    else:
        _show(run)
    sys.exit(1 if run.status == "failed" else 0)


@cron_group.command("history")
@click.argument("job")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per run.")
@connects
def history_command(connection: Connection, job: str, limit: int, as_json: bool) -> None:  # noqa: FBT001
    """List what became of a job, the newest first."""

    async def work() -> list[CronRun]:
        async with connection.open_for_operators() as api:
            return (await api.get(f"{PATH}/{job}/runs", CronRuns, limit=limit)).items

    runs = run_to_the_end(work())
    if as_json:
        _print_json(runs)
    elif not runs:
        click.echo(f"{job} was never carried out.")
    else:
        table = Table("slot (UTC)", "by", "status", "took", "counted", "findings", "error")
        for run in runs:
            table.add_row(
                f"{run.slot:%Y-%m-%d %H:%M:%S}",
                cell(f"{run.trigger}, dry" if run.dry_run else run.trigger),
                cell(run.status, COLOURS.get(run.status, "")),
                f"{run.duration_ms} ms" if run.duration_ms is not None else "",
                cell(_counted(run)),
                str(len(run.findings)),
                cell(run.error or ""),
            )
        console.print(table)


async def _ended(api: Api, run: CronRun) -> CronRun:
    with notes.status(f"{run.job} is {run.status}"):
        while not run.is_ended:
            await asyncio.sleep(LOOK_INTERVAL_S)
            run = await api.get(f"{PATH}/{run.job}/runs/{run.id}", CronRun)
    return run


def _show(run: CronRun) -> None:
    if not run.is_ended:
        click.echo(f"{run.job} is {run.status}. See what became of it with: oslira cron history {run.job}")
        return
    click.echo(f"{run.job} {run.status}: {run.error or _counted(run) or 'nothing to do'}")
    for finding in run.findings:
        click.echo(f"  {finding.kind}: {finding.subject}")


def _counted(run: CronRun) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in run.counts.items() if count)


def _print_json(things: list[CronJob] | list[CronRun]) -> None:
    for thing in things:
        click.echo(msgspec.json.encode(thing))
