"""Overhead of our own work on top of the providers' time."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from statistics import quantiles

import msgspec
from meters import resident_mb
from place import Place
from rounds import Call, Pair, Round
from world import STABLE, TASK, Verdict, open_world

from infrastructure.object_store.profile_codec import unpacked

CALLS = 8  # concurrent, where CPU time is measured
CALLS_MIN = 40  # enough for a meaningful high percentile
PARTS = 4
MANY = 1_000
LATENCY_MS = 400
FAULT = {"kind": "status", "status": 503, "times": None}
USERNAME = "some.baker"


async def _cpu_us(call: Call, seconds: float) -> float:
    """Returns the CPU time of this process per call."""
    calls_count = 0
    until_s = time.perf_counter() + seconds
    began_s = time.process_time()

    async def keep_calling() -> None:
        nonlocal calls_count
        while time.perf_counter() < until_s:
            await call()
            calls_count += 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CALLS):
            tasks.create_task(keep_calling())
    return (time.process_time() - began_s) / calls_count * 1_000_000


@asynccontextmanager
async def gateway_and_bare_sdk(place: Place) -> AsyncGenerator[Round]:
    """The full cost of a prompt, log and cache included, against the provider's client alone."""
    from openai import AsyncOpenAI  # noqa: PLC0415  the import takes a second

    from infrastructure.ai.response_format import for_openai, schema_of  # noqa: PLC0415

    async with open_world(place) as world:
        client = AsyncOpenAI(api_key="bench", base_url=f"{world.address}/openai/v1", max_retries=0)
        name, schema = schema_of(Verdict)
        form = {"type": "json_schema", "name": name, "schema": for_openai(schema)[0], "strict": True}

        async def bare() -> None:
            prompt = world.prompt()
            response = await client.responses.create(
                model="gpt-5-mini",
                input=[
                    *({"role": "developer", "content": part} for part in STABLE),
                    {"role": "user", "content": prompt.user_message},
                ],
                text={"format": form},
                reasoning={"effort": "low"},
                max_output_tokens=6_000,
                store=False,
            )
            msgspec.json.decode(response.output_text, type=Verdict)

        async def measure(seconds: int) -> Pair:
            return Pair(subject=await _cpu_us(world.ask, seconds), floor=await _cpu_us(bare, seconds))

        yield measure
        await client.close()


@asynccontextmanager
async def four_and_the_slowest(place: Place) -> AsyncGenerator[Round]:
    """Four concurrent prompts, against one alone, with a slow provider."""
    async with open_world(place) as world:
        await world.take_ms({"/openai": LATENCY_MS})

        async def four() -> None:
            await asyncio.gather(*(world.ask() for _ in range(PARTS)))

        async def measure(seconds: int) -> Pair:
            times = [Pair(await _ms(four), await _ms(world.ask)) for _ in range(seconds)]
            return Pair(*(sum(column) / len(times) for column in zip(*times, strict=True)))

        yield measure


async def _ms(call: Call) -> float:
    began_s = time.perf_counter()
    await call()
    return (time.perf_counter() - began_s) * 1_000


@asynccontextmanager
async def cached_profile_and_bare_file(place: Place) -> AsyncGenerator[Round]:
    """A profile with 50 posts from the local store, against the same file read and decoded directly."""
    async with open_world(place) as world:
        profiles = world.application.resources.providers.profiles
        await profiles.read(USERNAME, "deep", cost_owner=world.cost_owner)
        (file,) = [path for path in (place.folder / "objects").rglob("*") if path.is_file()]

        async def hit() -> None:
            assert (await profiles.read(USERNAME, "deep", cost_owner=world.cost_owner)).is_cached

        async def by_hand() -> None:
            assert unpacked(USERNAME, 50, file.read_bytes()).profile

        async def measure(seconds: int) -> Pair:
            return Pair(subject=await _p95_us(hit, seconds), floor=await _p95_us(by_hand, seconds))

        yield measure


async def _p95_us(call: Call, seconds: float) -> float:
    times: list[float] = []
    until_s = time.perf_counter() + seconds
    while time.perf_counter() < until_s or len(times) < CALLS_MIN:
        times.append(await _ms(call) * 1_000)
    return quantiles(times, n=20)[-1]


@asynccontextmanager
async def thousand_again_and_once(place: Place) -> AsyncGenerator[Round]:
    """Memory in use after many thousands of concurrent calls, against that after the first thousand."""
    async with open_world(place) as world:
        await world.take_ms({"/openai": LATENCY_MS})

        async def thousand() -> None:
            await asyncio.gather(*(world.ask() for _ in range(MANY)))

        await thousand()
        first = resident_mb("self")

        async def measure(_: int) -> Pair:
            await thousand()
            return Pair(subject=resident_mb("self"), floor=first)

        yield measure


@asynccontextmanager
async def outage_and_good_day(place: Place) -> AsyncGenerator[Round]:
    """High percentile of completions with OpenAI down and fallback to Claude, against Claude alone."""
    async with (
        open_world(place) as world,
        open_world(place, OSLIRA_MODELS=f"{TASK}=claude-haiku-5-5") as direct,
    ):
        await world.tell("/_faults", {"route": "/openai", **FAULT})

        async def measure(seconds: int) -> Pair:
            return Pair(
                subject=await _p95_us(world.ask, seconds) / 1_000,
                floor=await _p95_us(direct.ask, seconds) / 1_000,
            )

        yield measure
