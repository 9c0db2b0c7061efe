"""What our own work adds to the providers' time."""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from statistics import quantiles
from typing import Any

import httpx
import msgspec
from place import Place
from rounds import Call, Pair, Round
from tenants import ENTRIES_FEW, make_tenant

from core.wiring.application import Application, build
from core.wiring.place import surroundings
from infrastructure.cache.entries import unpacked
from infrastructure.simulators.supervisor import Simulators
from shared.ids import AccountId
from shared.questions import Question, Spender

CALLS = 8  # at a time, where work is measured
CALLS_MIN = 40  # for the slow end to mean something
PARTS = 4
MANY = 1_000
LATENCY_MS = 400
FAULT = {"kind": "status", "status": 503, "times": None}
TASK = "analysis.deep.core"
STABLE = ("The business sells flour and yeast to bakers. " * 80, "Judge how well the profile fits. " * 10)
USERNAME = "some.baker"


class Verdict(msgspec.Struct, frozen=True):
    overall_score: int
    niche_fit: int
    summary: str
    reasons: list[str]


class World:
    """The application as it is wired, with simulators that take no time."""

    def __init__(self, application: Application, http: httpx.AsyncClient, spender: Spender) -> None:
        self.application = application
        self.http = http
        self.address = str(http.base_url).rstrip("/")
        self.spender = spender
        self._numbers = itertools.count()

    def question(self) -> Question[Verdict]:
        """Another one every time: the same would be remembered."""
        text = f"followers: {next(self._numbers)}\nbiography: bread, every morning\n" * 20
        return Question(task=TASK, stable=STABLE, question=text, answer=Verdict, spender=self.spender)

    async def ask(self) -> None:
        await self.application.gateway.answer(self.question())

    async def tell(self, path: str, content: dict[str, Any]) -> None:
        (await self.http.post(path, json=content)).raise_for_status()


@asynccontextmanager
async def _world(place: Place, **environ: str) -> AsyncGenerator[World]:
    account_id, _ = await make_tenant(place.owner, ENTRIES_FEW)
    simulators = Simulators((str(place.folder), "http://127.0.0.1/auth/v1", "authenticated", "0"))
    address = await simulators.address()
    given = {
        **place.environ,
        "DATABASE_URL": place.addresses.owner,
        "OPENAI_API_KEY": "bench",
        "OPENAI_BASE_URL": f"{address}/openai/v1",
        "ANTHROPIC_API_KEY": "bench",
        "ANTHROPIC_BASE_URL": f"{address}/anthropic",
        "APIFY_TOKEN": "bench",
        "APIFY_API_URL": f"{address}/apify",
        **environ,
    }
    try:
        async with (
            build(surroundings(given)) as application,
            httpx.AsyncClient(base_url=address, timeout=30) as http,
        ):
            yield World(application, http, Spender(account_id=AccountId(account_id)))
    finally:
        await simulators.close()


async def _cpu_us(call: Call, seconds: float) -> float:
    """Of this process, a call."""
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
    """Everything that a question costs us, log and memory included, and the maker's client alone."""
    from openai import AsyncOpenAI  # noqa: PLC0415  takes a second

    from infrastructure.ai.schemas import answer_schema, for_openai  # noqa: PLC0415

    async with _world(place) as world:
        client = AsyncOpenAI(api_key="bench", base_url=f"{world.address}/openai/v1", max_retries=0)
        name, schema = answer_schema(Verdict)
        form = {"type": "json_schema", "name": name, "schema": for_openai(schema)[0], "strict": True}

        async def bare() -> None:
            question = world.question()
            response = await client.responses.create(
                model="gpt-5-mini",
                input=[
                    *({"role": "developer", "content": part} for part in STABLE),
                    {"role": "user", "content": question.question},
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
    """Four questions at once, and one alone, with a provider that takes its time."""
    async with _world(place) as world:
        await world.tell(
            "/_latency", {"routes": [{"route": "/openai", "distribution": "fixed", "ms": LATENCY_MS}]}
        )

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
    """A profile with 50 posts from the local store, and the same file read and decoded by hand."""
    async with _world(place) as world:
        profiles = world.application.profiles
        await profiles.read(USERNAME, "deep", spender=world.spender)
        (file,) = [path for path in (place.folder / "objects").rglob("*") if path.is_file()]

        async def hit() -> None:
            assert (await profiles.read(USERNAME, "deep", spender=world.spender)).is_cached

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
    """Memory in use after many thousands of simultaneous calls, and after the first thousand."""
    async with _world(place) as world:
        await world.tell(
            "/_latency", {"routes": [{"route": "/openai", "distribution": "fixed", "ms": LATENCY_MS}]}
        )

        async def thousand() -> None:
            await asyncio.gather(*(world.ask() for _ in range(MANY)))

        await thousand()
        first = _resident_mb()

        async def measure(_: int) -> Pair:
            await thousand()
            return Pair(subject=_resident_mb(), floor=first)

        yield measure


def _resident_mb() -> float:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * 4_096 / 1_000_000


@asynccontextmanager
async def outage_and_good_day(place: Place) -> AsyncGenerator[Round]:
    """The slow end of answers while OpenAI is down and Claude stands in, and of Claude's own."""
    async with _world(place) as world, _world(place, OSLIRA_MODELS=f"{TASK}=claude-haiku-5-5") as direct:
        await world.tell("/_faults", {"route": "/openai", **FAULT})

        async def measure(seconds: int) -> Pair:
            return Pair(
                subject=await _p95_us(world.ask, seconds) / 1_000,
                floor=await _p95_us(direct.ask, seconds) / 1_000,
            )

        yield measure
