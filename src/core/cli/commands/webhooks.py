"""Commands for outgoing webhooks: endpoints, secrets and deliveries."""

from uuid import UUID

import click

from core.cli.client.api_client import Api, Json, Page
from core.cli.client.connection import AS_JSON, uses_api
from core.cli.output.renderer import show_items
from features.webhooks.controllers.schemas import NewWebhookEndpointResponse, WebhookDeliveryResponse

ENDPOINTS = "/v1/webhooks/endpoints"
DELIVERIES = "/v1/webhooks/deliveries"
STATUSES = click.Choice(("pending", "delivered", "failed", "dead"))


@click.group("webhooks")
def webhooks_group() -> None:
    """Send events of the account to your server."""


@webhooks_group.command("list")
@AS_JSON
@uses_api
async def list_command(api: Api, as_json: bool) -> None:
    """List the endpoints."""
    page = await api.get(ENDPOINTS, Page[Json])
    show_items(
        page.items,
        ("id", "url", "types", "status", "disabled_reason", "failing_since"),
        as_json=as_json,
        if_empty="No endpoints yet. Add one: oslira webhooks add https://your.server/hook",
    )


@webhooks_group.command("add")
@click.argument("address", metavar="URL")
@click.option("--type", "types", multiple=True, help="Event type; repeat for several (default: all).")
@click.option("--description", help="Note for your own use.")
@uses_api
async def add_command(api: Api, address: str, types: tuple[str, ...], description: str | None) -> None:
    """Add an endpoint, and print the secret that signs its messages.

    \b
    Example:
      oslira webhooks add https://your.server/hook --type run.completed --type credits.low
    """
    body = {"url": address, "types": types, "description": description}
    endpoint = await api.post(ENDPOINTS, NewWebhookEndpointResponse, body)
    click.echo(f"Added endpoint {endpoint.id}. Verify signatures with this secret:", err=True)
    click.echo(endpoint.secret)


@webhooks_group.command("remove")
@click.argument("endpoint_id", type=click.UUID)
@uses_api
async def remove_command(api: Api, endpoint_id: UUID) -> None:
    """Remove an endpoint and its deliveries."""
    await api.send("DELETE", f"{ENDPOINTS}/{endpoint_id}")
    click.echo(f"Removed {endpoint_id}.")


@webhooks_group.command("test")
@click.argument("endpoint_id", type=click.UUID)
@uses_api
async def test_command(api: Api, endpoint_id: UUID) -> None:
    """Send a test message to an endpoint. See the result with: oslira webhooks deliveries."""
    delivery = await api.post(f"{ENDPOINTS}/{endpoint_id}/test", WebhookDeliveryResponse)
    click.echo(f"Queued a test message: delivery {delivery.id}.")


@webhooks_group.command("deliveries")
@click.option("--endpoint", type=click.UUID, help="Only deliveries to this endpoint.")
@click.option("--status", type=STATUSES, help="Only deliveries with this status.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Maximum number.")
@AS_JSON
@uses_api
async def deliveries_command(
    api: Api, endpoint: UUID | None, status: str | None, limit: int, as_json: bool
) -> None:
    """List deliveries and their last response, newest first."""
    endpoint_id = str(endpoint) if endpoint else None
    page = await api.get(DELIVERIES, Page[Json], endpoint_id=endpoint_id, status=status, limit=limit)
    show_items(
        page.items,
        ("id", "type", "status", "attempts", "last_status", "last_error", "created_at"),
        as_json=as_json,
        if_empty="No deliveries yet. Send a test message: oslira webhooks test ENDPOINT_ID",
    )
