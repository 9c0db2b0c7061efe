"""Gateway with fakes: scripted providers, call log and cache in memory, simple prices."""

import asyncio
import uuid
from collections import deque
from datetime import UTC, datetime, timedelta

import msgspec

from infrastructure.ai.gateway import Gateway
from infrastructure.ai.model_catalog import read_model_catalog
from infrastructure.ai.providers.base import EmbeddingReply, ModelReply, ProviderError
from infrastructure.ai.routing.timing import TimeSource
from infrastructure.monitoring.cost_tracker import CostTracker
from shared.ids import AccountId
from shared.llm import CostOwner, StructuredPrompt, Usage

TABLE = """
[models.first]
provider = "openai"
context_tokens_max = 1000
output_tokens_max = 10_000
efforts = ["low", "high"]
[models.second]
provider = "anthropic"
context_tokens_max = 2000
output_tokens_max = 10_000
[models.vectors]
provider = "openai"
kind = "embedding"
context_tokens_max = 1000
[tasks.write]
model = "first"
fallbacks = ["second"]
effort = "low"
output_tokens_max = 1000
deadline_s = 60
attempts_max = 5
[tasks.lonely]
model = "first"
output_tokens_max = 1000
deadline_s = 60
attempts_max = 5
[tasks.patient]
model = "first"
output_tokens_max = 1000
deadline_s = 200
attempts_max = 1
[tasks.embeddings]
model = "vectors"
deadline_s = 30
attempts_max = 3
"""
START = datetime(2026, 1, 1, tzinfo=UTC)
USAGE = Usage(tokens_in=100, tokens_out=10)
ALICE = CostOwner(account_id=AccountId(uuid.UUID(int=1)))
BOB = CostOwner(account_id=AccountId(uuid.UUID(int=2)))
NO_OWNER = CostOwner()


class Score(msgspec.Struct, frozen=True):
    score: int


def reply(text='{"score": 7}', end="complete", **options):
    return ModelReply(text=text, end=end, usage=USAGE, model="as they call it", is_simulated=True, **options)


def provider_error(kind, *, was_sent=True, retry_after_s=None):
    return ProviderError(
        kind, was_sent=was_sent, is_simulated=True, retry_after_s=retry_after_s, detail="503"
    )


class FakeProvider:
    """Replies by the script, then by ``always``: a reply, a ProviderError, another error, or a kind of hang.
    The first element of a pair is the duration.
    """

    def __init__(self, name, *script):
        self.name = name
        self.script = deque(script)
        self.always = reply()
        self.latency_s = 1.0
        self.requests = []
        self.deadlines_s = []
        self.in_flight = 0
        self.in_flight_max = 0
        self.is_closed = False
        self.is_prepared = False

    async def prepare(self):
        self.is_prepared = True

    async def complete(self, request, *, deadline_s):
        act = await self._follow(request, deadline_s)
        return (
            reply('{"is_available": true}') if request.response_format.name == "ProviderAvailability" else act
        )

    async def embed(self, texts, *, model, dimensions, deadline_s):
        assert dimensions is None
        act = await self._follow((texts, model), deadline_s)
        if isinstance(act, EmbeddingReply):
            return act
        return EmbeddingReply(
            vectors=tuple((float(len(text)),) for text in texts),
            usage=Usage(tokens_in=len(texts)),
            model=model,
            is_simulated=True,
        )

    async def _follow(self, request, deadline_s):
        self.requests.append(request)
        self.deadlines_s.append(deadline_s)
        act = self.script.popleft() if self.script else self.always
        latency_s, act = act if isinstance(act, tuple) else (self.latency_s, act)
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight, self.in_flight_max)
        try:
            if act == "hangs":
                await asyncio.sleep(deadline_s)
                raise provider_error("timeout")
            await asyncio.sleep(10_000 if act == "hangs for ever" else latency_s)
        finally:
            self.in_flight -= 1
        if isinstance(act, Exception):
            raise act
        return act

    async def close(self):
        self.is_closed = True


class FakeCalls:
    """Suspends on every row, so that an unshielded write can be cancelled."""

    def __init__(self):
        self.rows = []

    async def record_model_call(self, call):
        await asyncio.sleep(0)
        self.rows.append(call)

    async def record_scrape(self, call):
        raise NotImplementedError


class FakePrices:
    """One nanodollar per token at the first provider, two at the second; one model has no price."""

    def of_tokens(self, provider, model, usage, at):
        assert at.tzinfo is not None
        if model == "unpriced":
            return None
        return (usage.tokens_in + usage.tokens_out) * {"openai": 1, "anthropic": 2}[provider]


class FakeCompletions:
    def __init__(self):
        self.stored = {}
        self.error = None
        self.latency_s = 0.0

    async def find(self, account_id, completion_key):
        await self._work()
        return self.stored.get((account_id, completion_key))

    async def put(self, account_id, completion_key, completion):
        await self._work()
        self.stored[account_id, completion_key] = completion

    async def _work(self):
        await asyncio.sleep(self.latency_s)
        if self.error:
            raise self.error


class World:
    def __init__(self, first=(), second=(), *, table=TABLE, chance=0.5, completions=None, **options):
        self.first = FakeProvider("openai", *first)
        self.second = FakeProvider("anthropic", *second)
        self.calls = FakeCalls()
        self.prices = FakePrices()
        self.slept_s = []
        self.chance = chance
        clocks = TimeSource(
            now=lambda: START + timedelta(seconds=self.now_s()),
            monotonic_s=self.now_s,
            sleep=self._sleep,
            random=lambda: self.chance,
        )
        self.gateway = Gateway(
            catalog=read_model_catalog(text=table),
            providers={"openai": self.first, "anthropic": self.second},
            embedding_providers={"openai": self.first},
            costs=CostTracker(self.calls, self.prices, now=clocks.now, monotonic_s=clocks.monotonic_s),
            completions=completions,
            clocks=clocks,
            **options,
        )

    def now_s(self):
        return asyncio.get_running_loop().time() - 1_000

    async def _sleep(self, duration_s):
        self.slept_s.append(duration_s)
        await asyncio.sleep(duration_s)

    @property
    def rows(self):
        return self.calls.rows

    @property
    def asked(self):
        return len(self.first.requests) + len(self.second.requests)

    @property
    def free_slots(self):
        slots = self.gateway._attempts._slots  # noqa: SLF001  the only sign of a slot that was not released
        return {semaphore._value for semaphore in slots.values()}  # noqa: SLF001

    async def ask(self, text="How good?", *, task="write", cost_owner=ALICE, **options):
        return await self.gateway.complete(prompt(text, task=task, cost_owner=cost_owner, **options))

    async def outcome(self, *args, **options):
        """The completion or the error."""
        try:
            return await self.ask(*args, **options)
        except Exception as error:  # noqa: BLE001
            return error


def prompt(text="How good?", *, task="write", cost_owner=ALICE, output_type=Score, **options):
    options.setdefault("cached_prefix", ("You judge.", "About us."))
    return StructuredPrompt(
        task=task, user_message=text, output_type=output_type, cost_owner=cost_owner, **options
    )
