"""Commands that list cron jobs, run them now and show their history."""

import asyncio

import click
import msgspec

from core.cli.client.api_client import Api, Json, Page
from core.cli.client.connection import AS_JSON, uses_api
from core.cli.client.runtime import error_console
from core.cli.output.renderer import show_items, show_object
from features.operations.controllers.cron import CronRunResponse

PATH = "/v1/admin/cron"
POLL_INTERVAL_S = 0.5
ENDED = ("completed", "failed")
JOB_COLUMNS = ("name", "schedule", "title", "next_due_at", "last_run.status", "last_run.counts")
RUN_COLUMNS = ("slot", "trigger", "dry_run", "status", "duration_ms", "counts", "findings", "error")


@click.group("cron")
def cron_group() -> None:
    """List cron jobs, run one now, show past runs. For operators.

    \b
    Examples:
      oslira cron list
      oslira cron run daily-cleanup --dry-run --wait
      oslira cron history renewal-sweep
    """


@cron_group.command("list")
@AS_JSON
@uses_api
async def list_command(api: Api, as_json: bool) -> None:
    """List the jobs with schedule (UTC), next run and last result."""
    show_items((await api.get(PATH, Page[Json])).items, JOB_COLUMNS, as_json=as_json)


@cron_group.command("run")
@click.argument("job")
@click.option("--dry-run", is_flag=True, help="Count what the job would do, and change nothing.")
@click.option("--wait", is_flag=True, help="Wait for the end; exits 1 if the job failed.")
@AS_JSON
@uses_api
async def run_command(api: Api, job: str, dry_run: bool, wait: bool, as_json: bool) -> int:
    """Run a job now."""
    run = await api.post(f"{PATH}/{job}/run", CronRunResponse, {"dry_run": dry_run})
    if wait:
        run = await _wait_until_ended(api, run)
    show_object(msgspec.to_builtins(run), ("job", *RUN_COLUMNS), as_json=as_json)
    if run.status not in ENDED:
        click.echo(f"See the result with: oslira cron history {job}", err=True)
    return 1 if run.status == "failed" else 0


@cron_group.command("history")
@click.argument("job")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Maximum number.")
@AS_JSON
@uses_api
async def history_command(api: Api, job: str, limit: int, as_json: bool) -> None:
    """List the runs of a job, newest first."""
    page = await api.get(f"{PATH}/{job}/runs", Page[Json], limit=limit)
    show_items(page.items, RUN_COLUMNS, as_json=as_json, if_empty=f"The job {job} has not run yet.")


async def _wait_until_ended(api: Api, run: CronRunResponse) -> CronRunResponse:
    with error_console.status(f"{run.job} is {run.status}"):
        while run.status not in ENDED:
            await asyncio.sleep(POLL_INTERVAL_S)
            run = await api.get(f"{PATH}/{run.job}/runs/{run.id}", CronRunResponse)
    return run
