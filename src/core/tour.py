"""What `scripts/run` shows: one piece of paid work, over REST, from sign-up to statement."""

import asyncio
import uuid
from collections.abc import Awaitable
from typing import Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

CREDITS_HELD = 5
CREDITS_SPENT = 3
START_TIMEOUT_S = 30


async def tour(address: str, *, token: str, operator_token: str, console: Console) -> None:
    user = {"Authorization": f"Bearer {token}"}
    operator = {"Authorization": f"Bearer {operator_token}"}
    reference = f"tour:{uuid.uuid4().hex[:8]}"
    steps = ("sign up", "hold", "settle", "statement")
    bar = Progress(
        TextColumn("{task.description:<12}"), BarColumn(), TextColumn("{task.completed}/{task.total}"),
        console=console,
    )  # fmt: skip
    with bar:
        progress = bar.add_task(steps[0], total=len(steps))

        def next_step(number: int) -> None:
            bar.update(progress, completed=number, description=steps[min(number, len(steps) - 1)])

        async with httpx.AsyncClient(base_url=address, timeout=30) as client:
            await _until_it_answers(client)
            signed_up = await _json(client.get("/v1/credits/balance", headers=user))
            next_step(1)
            account = f"/v1/admin/accounts/{signed_up['account_id']}/credits"
            held = await _json(
                client.post(
                    f"{account}/holds",
                    headers=operator,
                    json={"reference": reference, "credits": CREDITS_HELD, "description": "Tour"},
                )
            )
            next_step(2)
            settled = await _json(
                client.post(
                    f"{account}/settlements",
                    headers=operator,
                    json={"reference": reference, "credits_spent": CREDITS_SPENT},
                )
            )
            next_step(3)
            statement = await _json(client.get("/v1/credits/transactions?limit=5", headers=user))
            next_step(4)
    balances = Table("after", "available", "held", title="One piece of paid work")
    for name, balance in (("signing up", signed_up), ("the hold", held), ("settling", settled)):
        balances.add_row(name, str(balance["credits_available"]), str(balance["credits_held"]))
    console.print(balances)
    console.print(_statement(statement["items"]))


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
