"""Commands that check the server and its providers."""

import logging
import sys

import click
import httpx
import msgspec
from rich.table import Table

from core.api.health import Readiness
from core.cli.client.connection import TOKEN_VARIABLE, operator_token
from core.cli.client.runtime import console, read_surroundings, run_to_the_end
from core.provider_checks import check_providers
from core.wiring.application import build


@click.command("health")
@click.option("--url", help="Where the server is (default: this machine, the configured port).")
def health_command(url: str | None) -> None:
    """Show what works and what does not. Exits 1 when the server is not ready.

    The server shows details to operators: set OSLIRA_TOKEN to an operator's access token.
    """
    settings = read_surroundings().settings
    url = url or f"http://{settings.host}:{settings.port}"
    token = operator_token(settings, url)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        content = httpx.get(f"{url}/health/ready", headers=headers, timeout=10).content
        readiness = msgspec.json.decode(content, type=Readiness)
    except (httpx.HTTPError, httpx.InvalidURL):
        raise click.ClickException(f"Nothing answers at {url}. Start it with: oslira serve") from None
    except msgspec.DecodeError:
        raise click.ClickException(f"What answers at {url} is not Oslira.") from None
    if not readiness.bindings:
        console.print(f"{url}: {readiness.status}. For details set {TOKEN_VARIABLE} to an operator's token.")
        sys.exit(1 if readiness.status == "not_ready" else 0)
    table = Table("binding", "works", "is", "detail", title=f"{url}: {readiness.status}")
    for name, binding in readiness.bindings.items():
        works = "[green]yes[/]" if binding.ok else "[red]no[/]"
        table.add_row(name, works, binding.mode, binding.detail)
    console.print(table)
    sys.exit(1 if readiness.status == "not_ready" else 0)


@click.command("providers")
def providers_command() -> None:
    """Ask every provider for the least it sells, with the keys that are configured.

    It costs about a cent when they are real. Exits 1 when one does not answer.
    """
    place = read_surroundings(logging.WARNING)
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
        are_answered = run_to_the_end(work())
    console.print(table)
    sys.exit(0 if are_answered else 1)
