"""Commands that run a process until SIGTERM or SIGINT."""

import logging
from datetime import timedelta
from uuid import uuid4

import click

from core.cli.client.runtime import console, read_surroundings, run_to_the_end, signs_tokens
from core.cli.demo import tour
from core.processes.embedded_worker import run_worker_in_api
from core.processes.server import serve
from core.wiring.bootstrap import local_issuer, run_simulators
from core.wiring.slice import queues_of
from core.wiring.slices import SLICES

PORTS = click.IntRange(0, 65_535)
PORT = click.option("--port", type=PORTS, help="Where to listen; 0 picks a free port.")
HOST = click.option("--host", help="Which address to listen on (default 127.0.0.1).")


@click.command("serve")
@PORT
@HOST
def serve_command(port: int | None, host: str | None) -> None:
    """Answer HTTP, carry out runs and keep the time of cron jobs, in one process, until told to stop.

    On SIGTERM it takes no more, finishes what it can in OSLIRA_DRAIN_SECONDS and leaves runs that are not
    done to others, or to its next start.
    """
    place = read_surroundings(OSLIRA_PORT=port, OSLIRA_HOST=host)
    run_to_the_end(serve(place, side_task=run_worker_in_api))


@click.command("api")
@PORT
@HOST
def api_command(port: int | None, host: str | None) -> None:
    """Answer HTTP until told to stop; runs are carried out by oslira worker, cron jobs are started by
    oslira scheduler.
    """
    run_to_the_end(serve(read_surroundings(OSLIRA_PORT=port, OSLIRA_HOST=host)))


@click.command("worker")
@click.option("--queues", help="Which queues to work on, separated by commas (default: all).")
def worker_command(queues: str | None) -> None:
    """Carry out runs until told to stop; start as many as there is work for.

    On SIGTERM it takes no more, finishes what it can in OSLIRA_DRAIN_SECONDS and leaves the rest to others.
    """
    place = read_surroundings()
    # Imported here, because the engine takes seconds to import and the other commands do not need it.
    from core.processes.worker import run_worker  # noqa: PLC0415

    known = tuple(queue.name for queue in queues_of(SLICES))
    names = tuple((queues or "").replace(",", " ").split()) or known
    if unknown := sorted(set(names) - set(known)):
        raise click.BadParameter(f"{', '.join(unknown)}: the queues are {', '.join(known)}.")
    run_to_the_end(run_worker(place, queues=names))


@click.command("scheduler")
def scheduler_command() -> None:
    """Keep the time of cron jobs until told to stop; oslira worker carries them out.

    oslira serve does both. Where oslira api and oslira worker run instead, start one of these, or several:
    each slot of a job is claimed once.
    """
    place = read_surroundings()
    # Imported here, because it takes half a second and the other commands do not need it.
    from core.processes.scheduler import run_scheduler  # noqa: PLC0415

    run_to_the_end(run_scheduler(place))


@click.command("run")
@PORT
@click.option("--once", is_flag=True, help="Stop after the tour instead of serving on.")
def run_command(port: int | None, once: bool) -> None:  # noqa: FBT001
    """Serve, take a tour of the API, and go on serving."""
    place = read_surroundings(logging.ERROR, OSLIRA_PORT=port)
    if not signs_tokens(place.settings):
        raise click.ClickException(
            "The tour signs its own tokens; it runs in a local environment without an identity service."
        )
    issuer = local_issuer(place.settings)
    hour = timedelta(hours=1)

    async def companion(address: str) -> bool:
        await tour(
            address,
            token=issuer.token(f"tour-{uuid4().hex[:8]}@example.com", lifetime=hour),
            operator_token=issuer.token("operator@example.com", lifetime=hour, is_operator=True),
            console=console,
        )
        if once:
            return False
        console.print(f"\nServing on [bold]{address}[/]; its documentation is at {address}/schema")
        console.print("Press Ctrl-C to stop.")
        return True

    run_to_the_end(serve(place, companion, side_task=run_worker_in_api))


@click.command("simulators")
@click.option("--port", type=PORTS, default=0, help="Where to listen; 0 picks a free port.")
@click.option(
    "--latency-scale",
    type=click.FloatRange(0, 100),
    default=0.1,
    show_default=True,
    help="Of what providers take: 1 is 8 s for a profile and 3 to 15 s for a model, 0 no time at all.",
)
def simulators_command(port: int, latency_scale: float) -> None:
    """Answer in the place of OpenAI, Anthropic, Apify, ScraperAPI, Cloudflare's AI Gateway, Supabase Auth
    and Stripe, for development; prints its address.

    Below it are /openai/v1, /anthropic, /apify, /scraperapi, /cloudflare/v1/ACCOUNT/GATEWAY, /auth/v1 and
    /stripe, whose till takes no money and whose state is kept in simulated-stripe.sqlite.
    A username is always the same person, who does not exist; how it begins chooses a kind: private,
    missing, restricted, huge, nonlatin, hostile, empty, sparse. E-mail is not sent but appended to
    outbox.jsonl in the data folder. Without SUPABASE_URL the server starts one by itself when it needs it.
    """
    place = read_surroundings()
    if not place.settings.is_local:
        raise click.ClickException("Simulators run in a local environment only.")
    run_to_the_end(run_simulators(place.settings, port, latency_scale=latency_scale))
