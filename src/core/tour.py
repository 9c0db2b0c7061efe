"""What `scripts/run` shows: one piece of paid work, over REST, from sign-up to statement."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

CREDITS_HELD = 5
CREDITS_SPENT = 3
START_TIMEOUT_S = 30
STEPS_COUNT = 4


async def tour(address: str, *, token: str, operator_token: str, console: Console) -> None:
    answers: dict[str, Any] = {}
    bar = Progress(
        TextColumn("{task.description:<12}"), BarColumn(), TextColumn("{task.completed}/{task.total}"),
        console=console,
    )  # fmt: skip
    with bar:
        progress = bar.add_task("start", total=STEPS_COUNT)
        async with httpx.AsyncClient(base_url=address, timeout=30) as client:
            async for step, answer in _paid_work(client, token, operator_token):
                answers[step] = answer
                bar.update(progress, advance=1, description=step)
    balances = Table("after", "available", "held", title="One piece of paid work")
    for step in ("sign up", "hold", "settle"):
        balance = answers[step]
        balances.add_row(step, str(balance["credits_available"]), str(balance["credits_held"]))
    console.print(balances)
    console.print(_statement(answers["statement"]["items"]))


async def _paid_work(
    client: httpx.AsyncClient, token: str, operator_token: str
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Each step's name and answer, as it is done."""
    user = {"Authorization": f"Bearer {token}"}
    operator = {"Authorization": f"Bearer {operator_token}"}
    reference = f"tour:{uuid.uuid4().hex[:8]}"
    await _until_it_answers(client)
    balance = await _json(client.get("/v1/credits/balance", headers=user))
    yield "sign up", balance
    account = f"/v1/admin/accounts/{balance['account_id']}/credits"
    hold = {"reference": reference, "credits": CREDITS_HELD, "description": "Tour"}
    yield "hold", await _json(client.post(f"{account}/holds", headers=operator, json=hold))
    settlement = {"reference": reference, "credits_spent": CREDITS_SPENT}
    yield "settle", await _json(client.post(f"{account}/settlements", headers=operator, json=settlement))
    yield "statement", await _json(client.get("/v1/credits/transactions?limit=5", headers=user))


async def _until_it_answers(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(START_TIMEOUT_S):
        while True:
            try:
                await client.get("/health")
            except httpx.ConnectError:
                await asyncio.sleep(0.02)
            else:
                return


async def _json(request: Awaitable[httpx.Response]) -> dict[str, Any]:
    response = await request
    if response.is_error:
        raise RuntimeError(f"{response.request.url} answered {response.status_code}: {response.text}")
    return response.json()


def _statement(items: list[dict[str, Any]]) -> Table:
    table = Table("#", "kind", "for", "credits", "held", "balance", "reference", title="Statement")
    for item in items:
        table.add_row(
            str(item["id"]),
            item["kind"],
            item["transaction_type"],
            f"{item['credits_delta']:+d}",
            f"{item['held_delta']:+d}",
            str(item["balance_after"]),
            item["reference"],
        )
    return table
