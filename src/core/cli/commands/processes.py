"""Commands that run a process until SIGTERM or SIGINT."""

import logging
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import click

from core.cli.client.connection import OPERATOR_EMAIL
from core.cli.client.runtime import console, error_console, load_runtime, run_async, signs_tokens
from core.cli.commands.requests import METHODS, ApiGroup, request_command
from core.cli.demo import run_demo
from core.cli.output.request_lines import RequestLines
from core.processes.embedded_worker import run_worker_in_api
from core.processes.server import serve
from core.wiring.bootstrap import local_issuer, run_simulators
from core.wiring.slice import queues_of
from core.wiring.slices import SLICES

PORTS = click.IntRange(0, 65_535)
PORT = click.option("--port", type=PORTS, help="Port to listen on; 0 chooses a free one.")
HOST = click.option("--host", help="Address to listen on (default 127.0.0.1).")
TOKEN_LIFETIME = timedelta(hours=1)


@click.command("serve")
@PORT
@HOST
def serve_command(port: int | None, host: str | None) -> None:
    """Run API, worker and scheduler in one process.

    On SIGTERM it accepts no more work and completes what it can within OSLIRA_DRAIN_SECONDS. Other processes,
    or its next start, continue the remaining runs.
    """
    runtime = load_runtime(OSLIRA_PORT=port, OSLIRA_HOST=host)
    shows_requests = runtime.settings.is_local and error_console.is_terminal
    lines = RequestLines(error_console, is_active=True).wrap if shows_requests else None
    run_async(serve(runtime, side_task=run_worker_in_api, wrap_app=lines))


@click.group(
    "api", cls=ApiGroup, invoke_without_command=True, subcommand_metavar="[METHOD PATH [FIELD=VALUE]...]"
)
@PORT
@HOST
@click.pass_context
def api_group(context: click.Context, port: int | None, host: str | None) -> None:
    """Send a request to any route, or run the API server.

    With METHOD and PATH it sends a request and shows the response. A VALUE that is JSON keeps its type (5,
    true, null, [1, 2]); other text is a string. A string that looks like JSON needs quotes: name='"5"'. @-
    reads the whole body as JSON from standard input, @FILE from a file. The route list is at /schema.

    Without METHOD it serves HTTP until it is stopped; `oslira worker` executes the runs and `oslira
    scheduler` starts the cron jobs.

    \b
    Examples:
      oslira api GET /v1/runs -q status=failed -q limit=5
      oslira api POST /v1/business-profiles name="Seasonal Table" language=en
      oslira api PATCH /v1/business-profiles/ID @changes.json -H If-Match='"3"'
      oslira api DELETE /v1/leads/ID
      oslira api --port 8000
    """
    if context.invoked_subcommand is None:
        run_async(serve(load_runtime(OSLIRA_PORT=port, OSLIRA_HOST=host)))


for method in METHODS:
    api_group.add_command(request_command(method))


@click.command("worker")
@click.option("--queues", help="Queues to process, separated by commas (default: all).")
def worker_command(queues: str | None) -> None:
    """Execute runs; start as many workers as the load needs.

    On SIGTERM it accepts no more work and completes what it can within OSLIRA_DRAIN_SECONDS. Other workers
    continue the remaining runs.
    """
    runtime = load_runtime()
    # Imported here, because the engine takes seconds to import and the other commands do not need it.
    from core.processes.worker import run_worker  # noqa: PLC0415

    valid = tuple(queue.name for queue in queues_of(SLICES))
    names = tuple((queues or "").replace(",", " ").split()) or valid
    if unknown := sorted(set(names) - set(valid)):
        raise click.BadParameter(f"{', '.join(unknown)}: the queues are {', '.join(valid)}.")
    run_async(run_worker(runtime, queues=names))


@click.command("scheduler")
def scheduler_command() -> None:
    """Start cron jobs at their times.

    `oslira worker` executes them. `oslira serve` includes a scheduler. Where `oslira api` and `oslira worker`
    run instead, start one or more: each slot of a job is claimed once.
    """
    runtime = load_runtime()
    # Imported here, because it takes half a second and the other commands do not need it.
    from core.processes.scheduler import run_scheduler  # noqa: PLC0415

    run_async(run_scheduler(runtime))


@click.command("run")
@PORT
@click.option("--once", is_flag=True, help="Stop after the demonstration.")
def run_command(port: int | None, once: bool) -> None:
    """Demonstrate one analysis over the API, then serve."""
    runtime = replace(load_runtime(logging.ERROR, OSLIRA_PORT=port), report_step=_report_step)
    if not signs_tokens(runtime.settings):
        raise click.ClickException(
            "The demonstration signs its own tokens. It needs a local environment without identity service."
        )
    issuer = local_issuer(runtime.settings)
    lines = RequestLines(console, is_active=False)
    user = f"demo-{uuid4().hex[:8]}@example.com"

    async def demonstrate(address: str) -> bool:
        await run_demo(
            address,
            token=issuer.token(user, lifetime=TOKEN_LIFETIME),
            operator_token=issuer.token(OPERATOR_EMAIL, lifetime=TOKEN_LIFETIME, is_operator=True),
            console=console,
        )
        if not once:
            console.print(f"\nServing on [bold]{address}[/]; the API documentation is at {address}/schema")
            console.print("Press Ctrl-C to stop.")
            lines.is_active = console.is_terminal
        return not once

    run_async(serve(runtime, demonstrate, side_task=run_worker_in_api, wrap_app=lines.wrap))


def _report_step(title: str) -> None:
    error_console.print(f"== {title}", markup=False, highlight=False, soft_wrap=True)


@click.command("simulators")
@click.option("--port", type=PORTS, default=0, help="Port to listen on; 0 chooses a free one.")
@click.option(
    "--latency-scale",
    type=click.FloatRange(0, 100),
    default=0.1,
    show_default=True,
    help="Factor of real latency: 1 is 8 s for a profile and 3 to 15 s for a model, 0 is none.",
)
def simulators_command(port: int, latency_scale: float) -> None:
    """Run simulated providers for development.

    They replace OpenAI, Anthropic, Apify, ScraperAPI, Cloudflare AI Gateway, Supabase Auth and Stripe. The
    command prints its address. The paths are /openai/v1, /anthropic, /apify, /scraperapi,
    /cloudflare/v1/ACCOUNT/GATEWAY, /auth/v1 and /stripe. No money is taken; the state of Stripe is stored in
    simulated-stripe.sqlite in the data folder.

    A username always gives the same fictional profile. Its prefix selects a kind: private, missing,
    restricted, huge, nonlatin, hostile, empty, sparse. E-mail is not sent but appended to outbox.jsonl in the
    data folder. Without SUPABASE_URL the server starts a simulator by itself when it needs one.
    """
    settings = load_runtime().settings
    if not settings.is_local:
        raise click.ClickException("Simulators run only in a local environment.")
    run_async(run_simulators(settings, port, latency_scale=latency_scale))
