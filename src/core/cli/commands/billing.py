"""Commands for plans, credit packs, subscriptions and invoices."""

import logging

import click

from core.cli.client.api_client import Api, Json, Page
from core.cli.client.checkout import PATH, credits_available, open_checkout, pay
from core.cli.client.connection import AS_JSON, uses_api
from core.cli.client.runtime import load_runtime, run_async
from core.cli.output.renderer import money, show_items, show_object
from core.wiring.application import build
from features.billing.application.catalog import Catalog
from features.billing.domain.catalog import Published
from shared.text import plain

PAY = click.option(
    "--pay", "pays", is_flag=True, help="With simulated Stripe: pay, and wait for the credits."
)
SUBSCRIPTION_FIELDS = (
    *("plan", "plan_in_force", "status", "monthly_credits", "credits_granted", "price_cents"),
    *("period_end", "next_plan", "cancels_at"),
)
PREVIEW_FIELDS = (
    *("plan", "direction", "effective_at", "due_now_cents", "credits_now"),
    *("price_cents", "credits_monthly"),
)


@click.group("billing")
def billing_group() -> None:
    """Buy credits, manage the plan, list invoices.

    \b
    Examples:
      oslira billing plans
      oslira billing buy small --pay
      oslira billing change pro
    """


@billing_group.command("plans")
@AS_JSON
@uses_api
async def plans_command(api: Api, as_json: bool) -> None:
    """List plans (monthly credits) and packs (credits bought once)."""
    offers = await api.get(f"{PATH}/plans", Json)
    if as_json:
        show_object(offers, as_json=True)
        return
    show_items(offers["plans"], ("name", "title", "monthly_credits", "price_cents"))
    show_items(offers["packs"], ("name", "title", "credits", "price_cents"))


@billing_group.command("subscription")
@AS_JSON
@uses_api
async def subscription_command(api: Api, as_json: bool) -> None:
    """Show the plan, its renewal and its next change."""
    show_object(await api.get(f"{PATH}/subscription", Json), SUBSCRIPTION_FIELDS, as_json=as_json)


@billing_group.command("buy")
@click.argument("pack")
@PAY
@uses_api
async def buy_command(api: Api, pack: str, pays: bool) -> None:
    """Buy a pack of credits: prints the URL of the checkout page."""
    await _buy(api, pays=pays, pack=pack)


@billing_group.command("subscribe")
@click.argument("plan")
@PAY
@uses_api
async def subscribe_command(api: Api, plan: str, pays: bool) -> None:
    """Subscribe to a plan: prints the URL of the checkout page. An account with a paid plan uses `change`."""
    await _buy(api, pays=pays, plan=plan)


async def _buy(api: Api, *, pays: bool, **offer: str) -> None:
    checkout = await open_checkout(api, **offer)
    if not pays:
        price = money(checkout.price_cents, checkout.currency)
        click.echo(f"Pay {price} here:\n{plain(checkout.url or '')}")
        return
    before = await credits_available(api)
    await pay(api, checkout)
    click.echo(f"Paid. Credits: {before:,} before, {await credits_available(api):,} now.")


@billing_group.command("change")
@click.argument("plan")
@click.option("--yes", is_flag=True, help="Change without confirmation.")
@uses_api
async def change_command(api: Api, plan: str, yes: bool) -> None:
    """Change to another plan, after a preview and confirmation.

    A larger plan starts at once, a smaller one with the next period.
    """
    preview = await api.post(f"{PATH}/change-plan/preview", Json, {"plan": plan})
    show_object(preview, PREVIEW_FIELDS)
    if not yes:
        click.confirm("Change the plan?", abort=True)
    body = {"plan": plan, "preview_id": preview["preview_id"]}
    show_object(await api.post(f"{PATH}/change-plan", Json, body), SUBSCRIPTION_FIELDS)


@billing_group.command("cancel")
@uses_api
async def cancel_command(api: Api) -> None:
    """Cancel the plan at the end of the paid period."""
    show_object(await api.post(f"{PATH}/cancel", Json), SUBSCRIPTION_FIELDS)


@billing_group.command("resume")
@uses_api
async def resume_command(api: Api) -> None:
    """Withdraw a cancellation or a change to a smaller plan."""
    show_object(await api.post(f"{PATH}/resume", Json), SUBSCRIPTION_FIELDS)


@billing_group.command("invoices")
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="Maximum number.")
@AS_JSON
@uses_api
async def invoices_command(api: Api, limit: int, as_json: bool) -> None:
    """List invoices, newest first."""
    page = await api.get(f"{PATH}/invoices", Page[Json], limit=limit)
    columns = ("number", "created_at", "status", "due_cents", "hosted_url")
    show_items(page.items, columns, as_json=as_json, if_empty="No invoices yet.")


@billing_group.command("publish")
def publish_command() -> None:
    """Create the products and prices at Stripe. Repeatable; the first sale does it too.

    Uses the database directly, with the configured STRIPE_SECRET_KEY.
    """
    runtime = load_runtime(logging.WARNING)

    async def publish() -> list[Published]:
        async with build(runtime) as application:
            return await application.get(Catalog).publish()

    for published in run_async(publish()):
        state = "created" if published.is_new else "unchanged"
        click.echo(f"{published.offer.name}: {published.price_id} ({state})")
