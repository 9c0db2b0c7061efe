"""Commands for operators: database, access tokens, health, providers, costs and the credit ledger."""

import logging
import sys
from collections.abc import Sequence
from datetime import timedelta

import click
import httpx
import msgspec

from core.api.health import Readiness
from core.cli.client.connection import TOKEN_VARIABLE, operator_token
from core.cli.client.runtime import console, load_runtime, run_async, signs_tokens
from core.cli.output.renderer import items_table, show_items
from core.provider_checks import ProviderCheck, check_providers
from core.wiring.application import build
from core.wiring.bootstrap import apply_migrations, database_addresses, local_issuer
from core.wiring.slice import migration_folders
from core.wiring.slices import SLICES
from features.costs.application.reports import DAYS_DEFAULT, DAYS_MAX, CostReports, Report
from features.costs.controllers.schemas import dollars
from features.costs.domain.reports import CostLine
from features.credits.application.maintenance import CreditMaintenance
from features.credits.domain.ledger import Finding

MINUTE_H = 1 / 60
YEAR_H = 8_760.0
COST_COUNTS = ("calls", "calls_cached", "calls_failed", "calls_unpriced", "tokens_in", "tokens_out")


@click.command("migrate")
def migrate_command() -> None:
    """Apply database migrations and load new prices. Repeatable; safe to run concurrently."""
    runtime = load_runtime()

    async def migrate() -> tuple[list[str], int]:
        async with database_addresses(runtime.settings) as addresses:
            if not addresses.owner:
                raise click.ClickException("Set DATABASE_URL to the address of the tables' owner.")
            return await apply_migrations(runtime.settings, addresses, migration_folders(SLICES))

    names, prices_count = run_async(migrate())
    for name in names:
        click.echo(f"applied {name}")
    if not names:
        click.echo("The schema is up to date.")
    if prices_count:
        click.echo(f"added {prices_count} prices")


def _lifetime(_: click.Context, __: click.Parameter, hours: float) -> timedelta:
    if not MINUTE_H <= hours <= YEAR_H:  # also true for NaN
        raise click.BadParameter(f"Use {MINUTE_H:.3f} to {YEAR_H:,.0f} hours.")
    return timedelta(hours=hours)


@click.command("token")
@click.argument("email")
@click.option("--operator", is_flag=True, help="Allow the administration routes.")
@click.option(
    "--hours",
    "lifetime",
    type=float,
    default=1.0,
    show_default=True,
    callback=_lifetime,
    help="Lifetime of the token.",
)
def token_command(email: str, operator: bool, lifetime: timedelta) -> None:
    """Sign an access token for a local user."""
    settings = load_runtime().settings
    if not signs_tokens(settings):
        raise click.ClickException(
            "Tokens are signed by the identity service. Only a local environment without one signs its own."
        )
    click.echo(local_issuer(settings).token(email, lifetime=lifetime, is_operator=operator))


@click.command("health")
@click.option("--url", help="Address of the server (default: this machine, the configured port).")
def health_command(url: str | None) -> None:
    """Show the state of the server and its dependencies. Exits 1 if the server is not ready.

    The server shows details to operators: set OSLIRA_TOKEN to an operator's access token.
    """
    settings = load_runtime().settings
    url = url or f"http://{settings.host}:{settings.port}"
    readiness = _fetch_readiness(url, operator_token(settings, url))
    bindings = [{"binding": name, **msgspec.to_builtins(one)} for name, one in readiness.bindings.items()]
    if bindings:
        title = f"{url}: {readiness.status}"
        console.print(items_table(bindings, ("binding", "ok", "mode", "detail"), title=title))
    else:
        console.print(f"{url}: {readiness.status}. For details set {TOKEN_VARIABLE} to an operator's token.")
    sys.exit(1 if readiness.status == "not_ready" else 0)


def _fetch_readiness(url: str, token: str | None) -> Readiness:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        content = httpx.get(f"{url}/health/ready", headers=headers, timeout=10).content
        return msgspec.json.decode(content, type=Readiness)
    except (httpx.HTTPError, httpx.InvalidURL):
        raise click.ClickException(f"No server responds at {url}. Start one with: oslira serve") from None
    except msgspec.DecodeError:
        raise click.ClickException(f"The server at {url} is not Oslira.") from None


@click.command("providers")
def providers_command() -> None:
    """Check every provider with its cheapest call.

    It uses the configured keys. Real providers charge about a cent in total. Exits 1 if a provider fails.
    """
    runtime = load_runtime(logging.WARNING)
    providers = runtime.settings.providers
    modes = dict.fromkeys(providers.real, "real") | dict.fromkeys(providers.simulated, "simulated")

    async def check() -> list[ProviderCheck]:
        async with build(runtime) as application:
            return [check async for check in check_providers(application)]

    with console.status("Calling the providers"):
        checks = run_async(check())
    rows = [{**msgspec.to_builtins(one), "mode": modes.get(one.provider, "absent")} for one in checks]
    show_items(rows, ("provider", "mode", "what", "is_answered", "detail", "duration_ms"))
    sys.exit(0 if all(one.is_answered for one in checks) else 1)


@click.command("costs")
@click.option(
    "--days",
    type=click.IntRange(1, DAYS_MAX),
    default=DAYS_DEFAULT,
    show_default=True,
    help="Length of the period.",
)
def costs_command(days: int) -> None:
    """Show recent provider costs by model and task."""
    runtime = load_runtime()

    async def read_costs() -> Report[CostLine]:
        async with build(runtime) as application:
            return await application.get(CostReports).last_days(days)

    report = run_async(read_costs())
    columns = ("provider", "model", "task", *COST_COUNTS, "cost_dollars")
    show_items(_cost_rows(report.lines), columns, if_empty=f"No provider calls in the last {days} days.")
    if not report.is_complete:
        click.echo("The report is incomplete: use fewer days.")


def _cost_rows(lines: Sequence[CostLine]) -> list[dict[str, object]]:
    """Sums over the days, most expensive first, and a total."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for line in lines:
        provider = f"{line.provider} (simulated)" if line.is_simulated else line.provider
        numbers = [*(getattr(line, name) for name in COST_COUNTS), line.cost_nanodollars]
        key = (provider, line.model, line.task)
        sums[key] = [sum(pair) for pair in zip(sums.get(key, [0] * len(numbers)), numbers, strict=True)]
    ordered = sorted(sums.items(), key=lambda item: (-item[1][-1], item[0]))
    if ordered:
        ordered.append((("total", "", ""), [sum(column) for column in zip(*sums.values(), strict=True)]))
    return [
        {
            **dict(zip(("provider", "model", "task"), names, strict=True)),
            **dict(zip(COST_COUNTS, counts, strict=True)),
            "cost_dollars": dollars(nanodollars),
        }
        for names, (*counts, nanodollars) in ordered
    ]


@click.group("credits")
def credits_group() -> None:
    """Audit the credit ledger and expire credits."""


@credits_group.command("audit")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per finding.")
def audit_command(as_json: bool) -> None:
    """Check that balances, entries, lots and holds agree. Exits 1 on any difference."""
    runtime = load_runtime()

    async def audit() -> list[Finding]:
        async with build(runtime) as application:
            return list(await application.get(CreditMaintenance).audit())

    findings = run_async(audit())
    show_items(
        [msgspec.to_builtins(finding) for finding in findings],
        ("account_id", "finding", "expected", "found"),
        as_json=as_json,
        if_empty="The ledger is consistent: balances = entries = lots, and the holds match.",
    )
    sys.exit(1 if findings else 0)


@credits_group.command("expire")
def expire_command() -> None:
    """Expire credits that have reached their expiry date. Repeatable."""
    runtime = load_runtime()

    async def expire() -> tuple[int, int]:
        async with build(runtime) as application:
            return await application.get(CreditMaintenance).expire()

    accounts, credits_expired = run_async(expire())
    click.echo(f"{credits_expired} credits of {accounts} accounts expired.")
