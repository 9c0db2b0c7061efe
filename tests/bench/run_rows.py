"""A customer's waiting time beyond the providers' time."""

import itertools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from statistics import median

import httpx
from analyses import Analyses, providers_ms, usernames
from customers import make_customers
from place import Place
from processes import oslira
from rounds import Pair, Round
from runs import forget_runs
from world import World, open_world

from simulators.faults.latency import RUN

# Fixed latencies, so that both sides differ by our own work only.
DEEP_MS = {RUN: 1_600, "/openai": 3_000, "/anthropic": 3_000}
# Slow enough for two processors to serve twenty concurrent runs.
BULK_MS = {RUN: 1_000, "/openai": 500, "/anthropic": 500}
BULK_COUNT = 100
AT_ONCE = 10  # concurrent scrapes of the whole system
ALONE_COUNT = 3
ENGINE_MS_MAX = 150.0
LIGHT_MS_MAX = 500.0


@asynccontextmanager
async def deep_and_its_critical_path(place: Place) -> AsyncGenerator[Round]:
    async with _deep(place) as measure_round:
        yield measure_round


@asynccontextmanager
async def engines_part_and_what_is_allowed(place: Place) -> AsyncGenerator[Round]:
    """The time of a deep analysis beyond its scrape and the slowest of its prompts."""
    async with _deep(place) as measure_deep:

        async def measure_round(seconds: int) -> Pair:
            deep = await measure_deep(seconds)
            return Pair(subject=deep.subject - deep.floor, floor=ENGINE_MS_MAX)

        yield measure_round


@asynccontextmanager
async def _deep(place: Place) -> AsyncGenerator[Round]:
    names = usernames()
    async with _served_world(place, DEEP_MS) as (world, analyses):

        async def measure_round(_: int) -> Pair:
            """Measures one of each."""
            return Pair(
                subject=await analyses.single_ms(next(names), "deep"),
                floor=await providers_ms(world, next(names), "deep"),
            )

        yield measure_round


@asynccontextmanager
async def bulk_and_the_ideal(place: Place) -> AsyncGenerator[Round]:
    """A hundred light analyses, against a tenth as many in sequence. Their plan permits twenty concurrent
    runs, of which ten scrape; prompts run during other scrapes, so the ideal is not the minimum.
    """
    names = usernames()
    async with _served_world(place, BULK_MS) as (world, analyses):

        async def measure_round(_: int) -> Pair:
            bulk_ms = await analyses.bulk_ms(list(itertools.islice(names, BULK_COUNT)), "light")
            alone_ms = median([await providers_ms(world, next(names), "light") for _ in range(ALONE_COUNT)])
            return Pair(subject=bulk_ms, floor=alone_ms * BULK_COUNT / AT_ONCE)

        yield measure_round


@asynccontextmanager
async def light_again_and_what_is_allowed(place: Place) -> AsyncGenerator[Round]:
    """The same analysis of the same profile again: both the profile and the completion are cached."""
    async with _light_again(place, {}) as measure_round:
        yield measure_round


@asynccontextmanager
async def light_of_a_known_profile(place: Place) -> AsyncGenerator[Round]:
    """Only the profile is cached: the simulated model has a median latency of 600 ms."""
    async with _light_again(place, {"OSLIRA_COMPLETION_CACHE_HOURS": "0"}) as measure_round:
        yield measure_round


@asynccontextmanager
async def _light_again(place: Place, environ: dict[str, str]) -> AsyncGenerator[Round]:
    """Uses simulators with their default latencies."""
    username = next(usernames())
    async with _served(place, environ) as analyses:
        await analyses.single_ms(username, "light")

        async def measure_round(seconds: int) -> Pair:
            async def again() -> float:
                return await analyses.single_ms(username, "light")

            return Pair(subject=median(await _repeated(again, seconds)), floor=LIGHT_MS_MAX)

        yield measure_round


async def _repeated(call: Callable[[], Awaitable[float]], seconds: float) -> list[float]:
    until_s = time.perf_counter() + seconds
    results = [await call()]
    while time.perf_counter() < until_s:
        results.append(await call())
    return results


@asynccontextmanager
async def _served_world(place: Place, latencies_ms: dict[str, int]) -> AsyncGenerator[tuple[World, Analyses]]:
    """A server, and the same application in this process, with the same simulators."""
    async with open_world(place) as world:
        await world.take_ms(latencies_ms)
        async with _served(place, dict(world.environ)) as analyses:
            yield world, analyses


@asynccontextmanager
async def _served(place: Place, environ: dict[str, str]) -> AsyncGenerator[Analyses]:
    try:
        async with (
            oslira(place, "serve", environ) as address,
            httpx.AsyncClient(base_url=address, timeout=30) as http,
        ):
            (customer,) = await make_customers(place, address, 1)
            yield Analyses(place, http, customer)
    finally:
        await forget_runs(place.owner)
