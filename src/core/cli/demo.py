"""Demonstration for `scripts/run`: the main use case over REST, from sign-up to the credit statement."""

import asyncio

import click
import httpx
from rich.console import Console
from rich.table import Table

from core.cli.client.api_client import Api, open_api
from core.cli.client.businesses import EXAMPLE
from core.cli.client.businesses import PATH as BUSINESSES
from core.cli.client.checkout import is_simulated, money, open_checkout, pay
from core.cli.client.schemas import Answer, Balance, Business, Run, RunCosts, StartedRun
from core.cli.output.progress_bars import run_bar
from core.cli.output.report import Analysis, report_of
from core.cli.output.run_text import counted, ending_of
from core.cli.output.run_watcher import watched

USERNAME = "slow.kitchen"  # exists only in the simulators
TYPE = "deep"
PACK = "small"
START_TIMEOUT_S = 60
RUN_TIMEOUT_S = 120


class Entry(Answer, frozen=True, kw_only=True):
    id: int
    kind: str
    transaction_type: str
    credits_delta: int
    held_delta: int
    balance_after: int
    reference: str


class Statement(Answer, frozen=True, kw_only=True):
    items: list[Entry]


async def tour(address: str, *, token: str, operator_token: str, console: Console) -> None:
    await _until_it_answers(address)
    async with open_api(address, token) as api, open_api(address, operator_token) as operator:
        balance = await api.get("/v1/credits/balance", Balance)
        console.print(
            f"Signed up: {counted(balance.credits_available, 'credit')} as a welcome.", markup=False
        )
        business = await api.post(BUSINESSES, Business, EXAMPLE)
        console.print(f"Described a business: {business.name}.", markup=False)
        console.print(f"A {TYPE} analysis of @{USERNAME}:", markup=False)
        run = await _analysed(api, business.id, console)
        if run.status != "completed":
            raise click.ClickException(f"The analysis: {ending_of(run)}")
        analysis = await api.get(f"/v1/analyses/{run.run_id}", Analysis)
        costs = await operator.get(f"/v1/admin/runs/{run.run_id}/costs", RunCosts)
        console.print(report_of(analysis, run, costs))
        await _buy(api, console)
        statement = await api.get("/v1/credits/transactions", Statement, limit=10)
        console.print(_statement(statement.items))


async def _until_it_answers(address: str) -> None:
    async with asyncio.timeout(START_TIMEOUT_S), httpx.AsyncClient(base_url=address) as client:
        while True:
            try:
                await client.get("/health")
            except httpx.TransportError:
                await asyncio.sleep(0.02)
            else:
                return


async def _analysed(api: Api, business_id: str, console: Console) -> Run:
    """Also waits for the engine, which starts after the API."""
    asked = {"username": USERNAME, "type": TYPE, "business_profile_id": business_id}
    begun = await api.post("/v1/analyses", StartedRun, asked)
    try:
        async with asyncio.timeout(RUN_TIMEOUT_S):
            with run_bar(console) as show:
                return await watched(api, begun.run_id, show)
    except TimeoutError:
        raise click.ClickException(
            f"The analysis has not ended within {RUN_TIMEOUT_S} s. Look at it with: oslira runs show"
            f" {begun.run_id}"
        ) from None


async def _buy(api: Api, console: Console) -> None:
    before = await api.get("/v1/credits/balance", Balance)
    checkout = await open_checkout(api, pack=PACK)
    price = money(checkout.price_cents, checkout.currency)
    if not is_simulated(checkout.url or ""):
        console.print(f"More credits cost money, {price}, at Stripe's till: {checkout.url}", markup=False)
        return
    await pay(api, checkout)
    after = await api.get("/v1/credits/balance", Balance)
    console.print(
        f"Bought {counted(checkout.credits, 'credit')} for {price} at the simulated till:"
        f" {before.credits_available} before, {after.credits_available} now.",
        markup=False,
    )


def _statement(entries: list[Entry]) -> Table:
    table = Table("#", "kind", "for", "credits", "held", "balance", "reference", title="Statement")
    for entry in entries:
        table.add_row(
            str(entry.id),
            entry.kind,
            entry.transaction_type,
            f"{entry.credits_delta:+d}",
            f"{entry.held_delta:+d}",
            str(entry.balance_after),
            entry.reference,
        )
    return table
