"""The balance over HTTP, compared with an empty route and with a conventional implementation."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from place import BenchFailed, Place
from processes import OURS, empty_app, oslira, peer
from rounds import Pair, Round
from tools import run, wrk

from core.wiring.bootstrap import local_issuer

BALANCE = "/v1/credits/balance"


@asynccontextmanager
async def balance_and_empty_route(place: Place) -> AsyncGenerator[Round]:
    headers = await _bearer(place)
    async with oslira(place) as subject, empty_app(place) as floor:
        await _answer(subject + BALANCE, headers)

        async def measure_round(seconds: int) -> Pair:
            return Pair(
                subject=await wrk(subject + BALANCE, seconds, headers),
                floor=await wrk(floor + "/", seconds, {}),
            )

        yield measure_round


@asynccontextmanager
async def balance_and_peer(place: Place) -> AsyncGenerator[Round]:
    headers = await _bearer(place)
    async with oslira(place) as subject, peer(place, local_issuer(place.settings).public_key) as floor:
        ours = await _answer(subject + BALANCE, headers)  # first, because it signs the user up
        theirs = await _answer(floor + BALANCE, headers)
        if ours != theirs:
            raise BenchFailed(f"The peer does not do the same work: {theirs} instead of {ours}")

        async def measure_round(seconds: int) -> Pair:
            return Pair(
                subject=await wrk(subject + BALANCE, seconds, headers),
                floor=await wrk(floor + BALANCE, seconds, headers),
            )

        yield measure_round


async def _bearer(place: Place) -> dict[str, str]:
    token = await run(
        OURS.with_name("oslira"), "token", "bench@example.com", "--hours", 24, environ=place.environ
    )
    return {"Authorization": f"Bearer {token.strip()}"}


async def _answer(url: str, headers: dict[str, str]) -> dict[str, Any]:
    async with httpx.AsyncClient() as client:
        response = await client.get(url, headers=headers, timeout=30)
    if response.status_code != httpx.codes.OK:
        raise BenchFailed(f"{url} answers {response.status_code}: {response.text}")
    return response.json()
