"""The command line: what operators type."""

import logging
import os
import sys
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

import click
import httpx
import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from core.beside import carry_out_runs
from core.checks import check_providers
from core.cost_table import cost_table
from core.health import Readiness
from core.server import serve
from core.settings import SettingsRefused
from core.tour import tour
from core.wiring.application import build
from core.wiring.place import (
    Surroundings,
    apply_migrations,
    database_addresses,
    local_issuer,
    run_simulators,
    start_logs,
    surroundings,
)
from features.costs.application.reports import DAYS_DEFAULT, DAYS_MAX, Report
from features.costs.domain.reports import CostLine
from shared.errors import DomainError

T = TypeVar("T")
MINUTE_H = 1 / 60
YEAR_H = 8_760.0
PORT = click.option("--port", type=click.IntRange(0, 65_535), help="Where to listen; 0 picks a free port.")
HOST = click.option("--host", help="Which address to listen on (default 127.0.0.1).")
console = Console(width=None if sys.stdout.isatty() else 140)


def _surroundings(log_level: int = logging.INFO, **overrides: object) -> Surroundings:
    """Read the settings, let options outrank them, and say plainly what is wrong."""
    given = {name: str(value) for name, value in overrides.items() if value is not None}
    try:
        place = surroundings({**os.environ, **given})
    except SettingsRefused as refusal:
        raise click.ClickException(str(refusal)) from None
    start_logs(place.settings, level=log_level)
    return place


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; what an operator can do something about is told without a traceback."""
    try:
        return uvloop.run(work)
    except DomainError as error:
        reason = f" ({error.__cause__})" if error.__cause__ else ""
        raise click.ClickException(f"{error}{reason}") from error
    except (RuntimeError, SettingsRefused) as error:
        raise click.ClickException(str(error)) from error


def _lifetime(_: click.Context, __: click.Parameter, hours: float) -> timedelta:
    if not MINUTE_H <= hours <= YEAR_H:  # which NaN is not, either
        raise click.BadParameter(f"from {MINUTE_H:.3f} to {YEAR_H:,.0f} hours")
    return timedelta(hours=hours)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oslira")
def main() -> None:
    """Oslira: a backend that sells AI work by credits.

    Without any configuration it runs on a PostgreSQL of its own under .data/.
    Set DATABASE_URL for another one; README.md lists every variable.
    """


@main.command("serve")
@PORT
@HOST
def serve_command(port: int | None, host: str | None) -> None:
    """Answer HTTP and carry out runs, in one process, until told to stop.

    On SIGTERM it takes no more, finishes what it can in OSLIRA_DRAIN_SECONDS and leaves runs that are not
    done to others, or to its next start.
    """
    _run(serve(_surroundings(OSLIRA_PORT=port, OSLIRA_HOST=host), beside=carry_out_runs))


@main.command("api")
@PORT
@HOST
def api_command(port: int | None, host: str | None) -> None:
    """Answer HTTP until told to stop; runs are carried out by oslira worker."""
    _run(serve(_surroundings(OSLIRA_PORT=port, OSLIRA_HOST=host)))


@main.command("worker")
@click.option("--queues", help="Which queues to work on, separated by commas (default: all).")
def worker_command(queues: str | None) -> None:
    """Carry out runs until told to stop; start as many as there is work for.

    On SIGTERM it takes no more, finishes what it can in OSLIRA_DRAIN_SECONDS and leaves the rest to others.
    """
    place = _surroundings()
    # The engine takes seconds to import, which the other commands need not wait for.
    from core.wiring.engine import QUEUES, opened_parts  # noqa: PLC0415
    from core.worker import work  # noqa: PLC0415

    known = tuple(queue.name for queue in QUEUES)
    names = tuple((queues or "").replace(",", " ").split()) or known
    if unknown := sorted(set(names) - set(known)):
        raise click.BadParameter(f"{', '.join(unknown)}: the queues are {', '.join(known)}.")
    _run(work(opened_parts(place, listens_to=names)))


@main.command("run")
@PORT
@click.option("--once", is_flag=True, help="Stop after the tour instead of serving on.")
def run_command(port: int | None, once: bool) -> None:  # noqa: FBT001
    """Serve, take a tour of the API, and go on serving."""
    place = _surroundings(logging.WARNING, OSLIRA_PORT=port)
    if not (place.settings.is_local and place.settings.identity.signs_locally):
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

    _run(serve(place, companion, beside=carry_out_runs))


@main.command("migrate")
def migrate_command() -> None:
    """Bring the database's schema and its prices up to date. Repeatable; safe to race."""
    place = _surroundings()

    async def work() -> tuple[list[str], int]:
        async with database_addresses(place.settings) as addresses:
            if not addresses.owner:
                raise click.ClickException("Set DATABASE_URL to the address of the tables' owner.")
            return await apply_migrations(place.settings, addresses)

    names, prices_count = _run(work())
    for name in names:
        click.echo(f"applied {name}")
    if not names:
        click.echo("The schema is up to date.")
    if prices_count:
        click.echo(f"added {prices_count} prices")


@main.command("simulators")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="Where to listen; 0 picks a free port."
)
@click.option(
    "--latency-scale",
    type=click.FloatRange(0, 100),
    default=0.1,
    show_default=True,
    help="Of what providers take: 1 is 8 s for a profile and 3 to 15 s for a model, 0 no time at all.",
)
def simulators_command(port: int, latency_scale: float) -> None:
    """Answer in the place of OpenAI, Anthropic, Apify, ScraperAPI, Cloudflare's AI Gateway and Supabase
    Auth, for development; prints its address.

    Below it are /openai/v1, /anthropic, /apify, /scraperapi, /cloudflare/v1/ACCOUNT/GATEWAY and /auth/v1.
    A username is always the same person, who does not exist; how it begins chooses a kind: private,
    missing, restricted, huge, nonlatin, hostile, empty, sparse. E-mail is not sent but appended to
    outbox.jsonl in the data folder. Without SUPABASE_URL the server starts one by itself when it needs it.
    """
    place = _surroundings()
    if not place.settings.is_local:
        raise click.ClickException("Simulators run in a local environment only.")
    _run(run_simulators(place.settings, port, latency_scale=latency_scale))


@main.command("token")
@click.argument("email")
@click.option("--operator", is_flag=True, help="May use the administration routes.")
@click.option("--hours", "lifetime", type=float, default=1.0, show_default=True, callback=_lifetime)
def token_command(email: str, operator: bool, lifetime: timedelta) -> None:  # noqa: FBT001
    """Sign an access token for a local user, known by their e-mail address."""
    place = _surroundings()
    if not (place.settings.is_local and place.settings.identity.signs_locally):
        raise click.ClickException(
            "The identity service signs tokens; only a local environment without one does it itself."
        )
    token = local_issuer(place.settings).token(email, lifetime=lifetime, is_operator=operator)
    click.echo(token)


@main.command("health")
@click.option("--url", help="Where the server is (default: this machine, the configured port).")
def health_command(url: str | None) -> None:
    """Show what works and what does not. Exits 1 when the server is not ready."""
    settings = _surroundings().settings
    url = url or f"http://{settings.host}:{settings.port}"
    try:
        content = httpx.get(f"{url}/health/ready", timeout=10).content
        readiness = msgspec.json.decode(content, type=Readiness)
    except (httpx.HTTPError, httpx.InvalidURL):
        raise click.ClickException(f"Nothing answers at {url}. Start it with: oslira serve") from None
    except msgspec.DecodeError:
        raise click.ClickException(f"What answers at {url} is not Oslira.") from None
    table = Table("binding", "works", "is", "detail", title=f"{url}: {readiness.status}")
    for name, binding in readiness.bindings.items():
        works = "[green]yes[/]" if binding.ok else "[red]no[/]"
        table.add_row(name, works, binding.mode, binding.detail)
    console.print(table)
    sys.exit(1 if readiness.status == "not_ready" else 0)


@main.command("providers")
def providers_command() -> None:
    """Ask every provider for the least it sells, with the keys that are configured.

    It costs about a cent when they are real. Exits 1 when one does not answer.
    """
    place = _surroundings(logging.WARNING)
    providers = place.settings.providers
    modes = dict.fromkeys(providers.real, "real") | dict.fromkeys(providers.simulated, "simulated")
    table = Table("provider", "is", "asked for", "works", "detail", "ms")

    async def work() -> bool:
        are_answered = True
        async with build(place) as application:
            async for check in check_providers(application):
                are_answered &= check.is_answered
                works = "[green]yes[/]" if check.is_answered else "[red]no[/]"
                mode = modes.get(check.provider, "absent")
                table.add_row(
                    check.provider, mode, check.what, works, check.detail, f"{check.duration_ms:,.0f}"
                )
        return are_answered

    with console.status("Asking the providers"):
        are_answered = _run(work())
    console.print(table)
    sys.exit(0 if are_answered else 1)


@main.command("costs")
@click.option("--days", type=click.IntRange(1, DAYS_MAX), default=DAYS_DEFAULT, show_default=True)
def costs_command(days: int) -> None:
    """Show what providers have charged in the last days, by model and task."""
    place = _surroundings()

    async def work() -> Report[CostLine]:
        async with build(place) as application:
            return await application.cost_reports.last_days(days)

    report = _run(work())
    if not report.lines:
        click.echo(f"Nobody was called in the last {days} days.")
        return
    console.print(cost_table(report.lines, days))
    if not report.is_complete:
        click.echo("There is more: ask for fewer days.")


@main.group("credits")
def credits_group() -> None:
    """Keep the books."""


@credits_group.command("audit")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per finding.")
def audit_command(as_json: bool) -> None:  # noqa: FBT001
    """Check that balances, entries, lots and holds agree. Exits 1 on any difference."""
    place = _surroundings()

    async def work() -> list[Any]:
        async with build(place) as application:
            return list(await application.upkeep.audit())

    findings = _run(work())
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
    place = _surroundings()

    async def work() -> tuple[int, int]:
        async with build(place) as application:
            return await application.upkeep.expire()

    accounts, credits_expired = _run(work())
    click.echo(f"{credits_expired} credits of {accounts} accounts expired.")


if __name__ == "__main__":
    main()
