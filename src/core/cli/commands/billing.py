"""Commands for plans, credit packs, subscriptions and invoices."""

import logging

import click
import msgspec
from rich.table import Table

from core.cli.client.api_client import Api
from core.cli.client.billing_schemas import (
    Invoices,
    Offers,
    Preview,
    Subscription,
    change_in_words,
    in_words,
)
from core.cli.client.checkout import PATH, money, open_checkout, pay
from core.cli.client.connection import Connection, connects
from core.cli.client.runtime import console, read_surroundings, run_to_the_end
from core.cli.client.schemas import Balance
from core.cli.output.run_text import cell
from core.wiring.application import build
from features.billing.domain.catalog import Published
from shared.text import plain

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print it as the API gives it.")
PAY = click.option(
    "--pay",
    "pays",
    is_flag=True,
    help="Where Stripe is simulated: press its button, and wait for the credits.",
)


@click.group("billing")
def billing_group() -> None:
    """Buy credits, have a plan, see what was paid.

    \b
    Examples:
      oslira billing plans
      oslira billing buy small --pay
      oslira billing change pro
    """  # noqa: D301  (click reads the character)


@billing_group.command("plans")
@AS_JSON
@connects
def plans_command(connection: Connection, as_json: bool) -> None:  # noqa: FBT001
    """List what is sold: plans bring credits every month, packs bring them once, to keep."""

    async def work() -> Offers:
        async with connection.open() as api:
            return await api.get(f"{PATH}/plans", Offers)

    offers = run_to_the_end(work())
    if as_json:
        click.echo(msgspec.json.encode(offers))
        return
    table = Table("what", "name")
    table.add_column("credits", justify="right")
    table.add_column("price", justify="right")
    for plan in offers.plans:
        price = money(plan.price_cents, plan.currency) + " a month" if plan.price_cents else "free"
        table.add_row("plan", cell(plan.name), f"{plan.monthly_credits:,} a month", cell(price))
    for pack in offers.packs:
        table.add_row(
            "pack", cell(pack.name), f"{pack.credits:,}", cell(money(pack.price_cents, pack.currency))
        )
    console.print(table)


@billing_group.command("subscription")
@AS_JSON
@connects
def subscription_command(connection: Connection, as_json: bool) -> None:  # noqa: FBT001
    """Show the account's plan, and what follows it."""

    async def work() -> Subscription:
        async with connection.open() as api:
            return await api.get(f"{PATH}/subscription", Subscription)

    subscription = run_to_the_end(work())
    click.echo(msgspec.json.encode(subscription) if as_json else in_words(subscription))


@billing_group.command("buy")
@click.argument("pack")
@PAY
@connects
def buy_command(connection: Connection, pack: str, pays: bool) -> None:  # noqa: FBT001
    """Buy a pack of credits: prints the till's address."""
    run_to_the_end(_buy(connection, pays=pays, pack=pack))


@billing_group.command("subscribe")
@click.argument("plan")
@PAY
@connects
def subscribe_command(connection: Connection, plan: str, pays: bool) -> None:  # noqa: FBT001
    """Take a plan: prints the till's address. Who has one changes it."""
    run_to_the_end(_buy(connection, pays=pays, plan=plan))


async def _buy(connection: Connection, *, pays: bool, **what: str) -> None:
    async with connection.open() as api:
        checkout = await open_checkout(api, **what)
        if not pays:
            price = money(checkout.price_cents, checkout.currency)
            click.echo(f"{price}, to be paid here:\n{plain(checkout.url or '')}")
            return
        before = await _credits(api)
        await pay(api, checkout)
        click.echo(f"Paid. Credits: {before:,} before, {await _credits(api):,} now.")


async def _credits(api: Api) -> int:
    return (await api.get("/v1/credits/balance", Balance)).credits_available


@billing_group.command("change")
@click.argument("plan")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connects
def change_command(connection: Connection, plan: str, yes: bool) -> None:  # noqa: FBT001
    """Change to another plan: says first what it costs and brings, and asks.

    A larger plan begins at once, a smaller one with the next period.
    """

    async def work() -> None:
        async with connection.open() as api:
            preview = await api.post(f"{PATH}/change-plan/preview", Preview, {"plan": plan})
            click.echo(change_in_words(preview))
            if not yes:
                click.confirm("Change?", abort=True)
            agreed = {"plan": plan, "preview_id": preview.preview_id}
            click.echo(in_words(await api.post(f"{PATH}/change-plan", Subscription, agreed)))

    run_to_the_end(work())


@billing_group.command("cancel")
@connects
def cancel_command(connection: Connection) -> None:
    """End the plan with the period that is paid for."""
    run_to_the_end(_act(connection, "cancel"))


@billing_group.command("resume")
@connects
def resume_command(connection: Connection) -> None:
    """Keep a plan that was cancelled, or was to become a smaller one."""
    run_to_the_end(_act(connection, "resume"))


async def _act(connection: Connection, verb: str) -> None:
    async with connection.open() as api:
        click.echo(in_words(await api.post(f"{PATH}/{verb}", Subscription)))


@billing_group.command("invoices")
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="How many.")
@AS_JSON
@connects
def invoices_command(connection: Connection, limit: int, as_json: bool) -> None:  # noqa: FBT001
    """List invoices, the newest first."""

    async def work() -> Invoices:
        async with connection.open() as api:
            return await api.get(f"{PATH}/invoices", Invoices, limit=limit)

    found = run_to_the_end(work()).items
    if as_json:
        for invoice in found:
            click.echo(msgspec.json.encode(invoice))
        return
    if not found:
        click.echo("There are no invoices yet.")
        return
    table = Table("number", "day", "status")
    table.add_column("due", justify="right")
    table.add_column("where", overflow="fold")
    for invoice in found:
        due, day = money(invoice.due_cents, invoice.currency), f"{invoice.created_at:%Y-%m-%d}"
        number, where = cell(invoice.number or "-"), cell(invoice.hosted_url or "")
        table.add_row(number, day, cell(invoice.status), cell(due), where)
    console.print(table)


@billing_group.command("publish")
def publish_command() -> None:
    """Tell Stripe the prices of everything that is sold. Repeatable; the first sale does it too.

    Works on the database directly, with the configured STRIPE_SECRET_KEY.
    """
    place = read_surroundings(logging.WARNING)

    async def work() -> list[Published]:
        async with build(place) as application:
            return await application.billing.catalogue.publish()

    for published in run_to_the_end(work()):
        what = "published" if published.is_new else "known"
        click.echo(f"{published.offer.name}: {published.price_id} ({what})")
