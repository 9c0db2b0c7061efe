"""Commands for outgoing webhooks: endpoints, secrets and deliveries."""

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any
from uuid import UUID

import click
import msgspec
from rich.table import Table

from core.cli.client.api_client import Api
from core.cli.client.connection import Connection, connects
from core.cli.client.runtime import console, run_to_the_end
from core.cli.client.schemas import Answer
from core.cli.output.run_text import age_of, cell

ENDPOINTS = "/v1/webhooks/endpoints"
DELIVERIES = "/v1/webhooks/deliveries"
STATUSES = click.Choice(("pending", "delivered", "failed", "dead"))
COLOURS = {"active": "green", "delivered": "green", "disabled": "red", "failed": "red", "dead": "red"}


class Endpoint(Answer, frozen=True, kw_only=True):
    id: UUID
    url: str
    types: list[str]
    status: str
    disabled_reason: str | None = None
    failing_since: datetime | None = None


class NewEndpoint(Endpoint, frozen=True, kw_only=True):
    secret: str


class Endpoints(Answer, frozen=True, kw_only=True):
    items: list[Endpoint]


class Delivery(Answer, frozen=True, kw_only=True):
    id: UUID
    endpoint_id: UUID
    type: str
    status: str
    attempts: int
    last_status: int | None = None
    last_error: str | None = None
    created_at: datetime


class Deliveries(Answer, frozen=True, kw_only=True):
    items: list[Delivery]


@click.group("webhooks")
def webhooks_group() -> None:
    """Be told what happens in your account, by a request to an address of yours."""


@webhooks_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per endpoint.")
@connects
def list_command(connection: Connection, as_json: bool) -> None:  # noqa: FBT001
    """List the endpoints."""

    async def work(api: Api) -> None:
        found = (await api.get(ENDPOINTS, Endpoints)).items
        if as_json:
            _print(found)
        elif found:
            console.print(_endpoints_table(found))
        else:
            click.echo("There are no endpoints yet. Try: oslira webhooks add https://your.server/hook")

    _run(connection, work)


@webhooks_group.command("add")
@click.argument("address", metavar="URL")
@click.option("--type", "types", multiple=True, help="Only this; several times for several. Default: all.")
@click.option("--description", help="For yourselves.")
@connects
def add_command(
    connection: Connection, address: str, types: tuple[str, ...], description: str | None
) -> None:
    """Add an endpoint, and print the secret to check signatures by.

    \b
    Example:
      oslira webhooks add https://your.server/hook --type run.completed --type credits.low
    """  # noqa: D301  (click reads the character)

    async def work(api: Api) -> None:
        body = {"url": address, "types": types, "description": description}
        made = await api.post(ENDPOINTS, NewEndpoint, body)
        click.echo(f"Added {made.id}. Check signatures with:", err=True)
        click.echo(made.secret)

    _run(connection, work)


@webhooks_group.command("remove")
@click.argument("endpoint_id", type=click.UUID)
@connects
def remove_command(connection: Connection, endpoint_id: UUID) -> None:
    """Remove an endpoint, and what was sent to it."""

    async def work(api: Api) -> None:
        await api.send("DELETE", f"{ENDPOINTS}/{endpoint_id}")
        click.echo(f"Removed {endpoint_id}.")

    _run(connection, work)


@webhooks_group.command("test")
@click.argument("endpoint_id", type=click.UUID)
@connects
def test_command(connection: Connection, endpoint_id: UUID) -> None:
    """Send a test notice to an endpoint. What became of it: oslira webhooks deliveries."""

    async def work(api: Api) -> None:
        sent = await api.post(f"{ENDPOINTS}/{endpoint_id}/test", Delivery)
        click.echo(f"A test is on its way: delivery {sent.id}.")

    _run(connection, work)


@webhooks_group.command("deliveries")
@click.option("--endpoint", type=click.UUID, help="Only those to this endpoint.")
@click.option("--status", type=STATUSES, help="Only those.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="How many to show.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per delivery.")
@connects
def deliveries_command(
    connection: Connection,
    endpoint: UUID | None,
    status: str | None,
    limit: int,
    as_json: bool,  # noqa: FBT001
) -> None:
    """List what was sent, the latest first, and whether it arrived."""

    async def work(api: Api) -> None:
        only = str(endpoint) if endpoint else None
        page = await api.get(DELIVERIES, Deliveries, endpoint_id=only, status=status, limit=limit)
        if as_json:
            _print(page.items)
        elif page.items:
            console.print(_deliveries_table(page.items))
        else:
            click.echo("Nothing was sent yet. Try: oslira webhooks test ENDPOINT_ID")

    _run(connection, work)


def _run(connection: Connection, work: Callable[[Api], Coroutine[Any, Any, None]]) -> None:
    async def connected() -> None:
        async with connection.open() as api:
            await work(api)

    run_to_the_end(connected())


def _print(found: list[Any]) -> None:
    for one in found:
        click.echo(msgspec.json.encode(one))


def _endpoints_table(found: list[Endpoint]) -> Table:
    table = Table("id", "url", "types", "status", "failing for")
    for endpoint in found:
        reason = f" ({endpoint.disabled_reason})" if endpoint.disabled_reason else ""
        table.add_row(
            str(endpoint.id),
            cell(endpoint.url),
            cell(", ".join(endpoint.types) or "all"),
            cell(f"{endpoint.status}{reason}", COLOURS.get(endpoint.status, "")),
            age_of(endpoint.failing_since) if endpoint.failing_since else "",
        )
    return table


def _deliveries_table(found: list[Delivery]) -> Table:
    table = Table("id", "type", "status")
    table.add_column("attempts", justify="right")
    table.add_column("last answer")
    table.add_column("age", justify="right")
    for delivery in found:
        answer = delivery.last_error or (str(delivery.last_status) if delivery.last_status else "")
        table.add_row(
            str(delivery.id),
            cell(delivery.type),
            cell(delivery.status, COLOURS.get(delivery.status, "")),
            str(delivery.attempts),
            cell(answer),
            age_of(delivery.created_at),
        )
    return table
