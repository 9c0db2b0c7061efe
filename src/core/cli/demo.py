"""Demonstration for `scripts/run`: the main use case over REST, from sign-up to the credit statement."""

import asyncio

import click
import httpx
from rich.console import Console

from core.cli.client.api_client import Api, Json, Page, open_api
from core.cli.client.businesses import EXAMPLE
from core.cli.client.businesses import PATH as BUSINESSES
from core.cli.client.checkout import credits_available, is_simulated, open_checkout, pay
from core.cli.output.progress_bars import run_bar
from core.cli.output.renderer import counted, items_table, money
from core.cli.output.report import analysis_report
from core.cli.output.run_text import outcome_text
from core.cli.output.run_watcher import poll_until_ended
from features.analysis.controllers.analysis_schemas import AnalysisResponse
from features.analysis.controllers.start_schemas import StartedResponse
from features.business.controllers.schemas import ProfileResponse
from features.costs.controllers.schemas import RunCostsResponse
from features.runs.domain.view import RunResponse

USERNAME = "slow.kitchen"  # exists only in the simulators
TYPE = "deep"
PACK = "small"
START_TIMEOUT_S = 60
RUN_TIMEOUT_S = 120
ENTRY_COLUMNS = (
    *("kind", "transaction_type", "credits_delta", "held_delta", "balance_after"),
    "reference",
)


async def run_demo(address: str, *, token: str, operator_token: str, console: Console) -> None:
    await _wait_until_ready(address)
    async with open_api(address, token, operator_token=operator_token) as api:
        available = counted(await credits_available(api), "credit")
        console.print(f"Signed up: the account starts with {available}.", markup=False)
        business = await api.post(BUSINESSES, ProfileResponse, EXAMPLE)
        console.print(f"Created a business profile: {business.name}.", markup=False)
        console.print(f"Starting a {TYPE} analysis of @{USERNAME}:", markup=False)
        run = await _analyse(api, str(business.id), console)
        if run.status != "completed":
            raise click.ClickException(f"The analysis: {outcome_text(run)}")
        analysis = await api.get(f"/v1/analyses/{run.run_id}", AnalysisResponse)
        costs = await api.get(f"/v1/admin/runs/{run.run_id}/costs", RunCostsResponse)
        console.print(analysis_report(analysis, run, costs))
        await _buy_credits(api, console)
        entries = (await api.get("/v1/credits/transactions", Page[Json], limit=10)).items
        console.print(items_table(entries, ENTRY_COLUMNS, title="Credit statement"))


async def _wait_until_ready(address: str) -> None:
    async with asyncio.timeout(START_TIMEOUT_S), httpx.AsyncClient(base_url=address) as client:
        while True:
            try:
                await client.get("/health")
            except httpx.TransportError:
                await asyncio.sleep(0.02)
            else:
                return


async def _analyse(api: Api, business_id: str, console: Console) -> RunResponse:
    """Also waits for the engine, which starts after the API."""
    request = {"username": USERNAME, "type": TYPE, "business_profile_id": business_id}
    started = await api.post("/v1/analyses", StartedResponse, request)
    try:
        async with asyncio.timeout(RUN_TIMEOUT_S):
            with run_bar(console) as show:
                return await poll_until_ended(api, str(started.run_id), show)
    except TimeoutError:
        raise click.ClickException(
            f"The analysis has not ended within {RUN_TIMEOUT_S} s. Show it with: oslira runs show"
            f" {started.run_id}"
        ) from None


async def _buy_credits(api: Api, console: Console) -> None:
    before = await credits_available(api)
    checkout = await open_checkout(api, pack=PACK)
    price = money(checkout.price_cents, checkout.currency)
    if not is_simulated(checkout.url or ""):
        console.print(f"More credits cost {price} of real money at Stripe: {checkout.url}", markup=False)
        return
    await pay(api, checkout)
    console.print(
        f"Bought {counted(checkout.credits, 'credit')} for {price} with simulated Stripe:"
        f" {before} before, {await credits_available(api)} now.",
        markup=False,
    )
