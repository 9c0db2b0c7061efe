"""Cost of authentication, rate limits and request records."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
from place import BenchFailed, Place
from processes import open_app, oslira
from rounds import Pair, Round
from tools import wrk

from core.wiring.bootstrap import local_issuer

BALANCE = "/v1/credits/balance"
PRINCIPALS = 32
MICROSECONDS = 1_000_000

# Clients in turn, each with its own credential.
SCRIPT = """
local credentials = {{{credentials}}}
local requests, number = {{}}, 0
init = function()
    for index, credential in ipairs(credentials) do
        requests[index] = wrk.format("GET", "{path}", {{["Authorization"] = "Bearer " .. credential}})
    end
end
request = function()
    number = number % #requests + 1
    return requests[number]
end
"""


@asynccontextmanager
async def door_and_no_door(place: Place) -> AsyncGenerator[Round]:
    script = _script(place, "tokens", _tokens(place))
    async with oslira(place) as subject, open_app(place, PRINCIPALS) as floor:

        async def measure_round(seconds: int) -> Pair:
            return Pair(
                subject=MICROSECONDS / await wrk(subject, seconds, {}, script),
                floor=MICROSECONDS / await wrk(floor, seconds, {}, script),
            )

        yield measure_round


@asynccontextmanager
async def keys_and_tokens(place: Place) -> AsyncGenerator[Round]:
    tokens = _tokens(place)
    with_tokens = _script(place, "tokens", tokens)
    async with oslira(place) as subject:
        with_keys = _script(place, "keys", await _keys(subject, tokens))

        async def measure_round(seconds: int) -> Pair:
            return Pair(
                subject=MICROSECONDS / await wrk(subject, seconds, {}, with_keys),
                floor=MICROSECONDS / await wrk(subject, seconds, {}, with_tokens),
            )

        yield measure_round


def _tokens(place: Place) -> list[str]:
    issuer = local_issuer(place.settings)
    return [
        issuer.token(f"bench-{number}@example.com", lifetime=timedelta(hours=2))
        for number in range(PRINCIPALS)
    ]


async def _keys(address: str, tokens: list[str]) -> list[str]:
    async with httpx.AsyncClient(base_url=address, timeout=30) as client:
        answers = await asyncio.gather(
            *(
                client.post(
                    "/v1/api-keys",
                    headers={"Authorization": f"Bearer {token}"},
                    json={"name": "bench", "scopes": ["credits:read"]},
                )
                for token in tokens
            )
        )
    if any(answer.is_error for answer in answers):
        raise BenchFailed(f"No API key: {answers[0].text}")
    return [answer.json()["key"] for answer in answers]


def _script(place: Place, name: str, credentials: list[str]) -> Path:
    path = place.folder / f"{name}.lua"
    quoted = ", ".join(f'"{credential}"' for credential in credentials)
    path.write_text(SCRIPT.format(credentials=quoted, path=BALANCE), encoding="ascii")
    return path
