import asyncio

import msgspec
import pytest

from shared.llm import ModelsUnavailable, Usage
from tests.fakes.ai import ALICE, BOB, NO_OWNER, FakeCompletions, World, provider_error, reply
from tests.fakes.virtual_time import run


@pytest.fixture
def completions():
    return FakeCompletions()


async def in_turn(world, *questions):
    return [await world.ask(**question) for question in questions]


def test_repeated_prompt_is_answered_from_the_cache(completions):
    world = World(completions=completions)

    first, second = run(in_turn(world, {}, {}))

    assert world.asked == 1
    assert (first.cache, second.cache) == ("none", "exact")
    assert (second.value, second.provider, second.model) == (first.value, "openai", "first")
    assert (second.usage, second.cost_nanodollars, second.is_simulated) == (Usage(), 0, True)
    assert [(row.outcome, row.cache, row.cost_nanodollars, row.attempt) for row in world.rows] == [
        ("answered", "none", 110, 1),
        ("answered", "exact", 0, 0),
    ]


class Points(msgspec.Struct):
    score: int


@pytest.mark.parametrize(
    "other",
    [
        {"text": "Another?"},
        {"cost_owner": BOB},
        {"cost_owner": NO_OWNER},
        {"task": "lonely"},
        {"cached_prefix": ("You judge.About us.",)},
        {"cached_prefix": ("You judge.", "About", " us.")},
        {"cached_prefix": ("You judge.", "About us.How"), "text": " good?"},
        {"output_type": Points},
        {"is_fresh": True},
    ],
)
def test_cache_is_separate_per_tenant_and_prompt(completions, other):
    world = World(completions=completions)

    run(in_turn(world, {}, other))

    assert world.asked == 2


def test_request_without_account_is_not_cached(completions):
    world = World(completions=completions)

    run(in_turn(world, {"cost_owner": NO_OWNER}, {"cost_owner": NO_OWNER}))

    assert world.asked == 2
    assert completions.stored == {}


def test_fresh_request_replaces_the_cached_completion(completions):
    world = World(completions=completions, first=[reply('{"score": 1}'), reply('{"score": 2}')])

    outcomes = run(in_turn(world, {}, {"is_fresh": True}, {}))

    assert [(outcome.value.score, outcome.cache) for outcome in outcomes] == [
        (1, "none"),
        (2, "none"),
        (2, "exact"),
    ]
    assert [request.is_fresh for request in world.first.requests] == [False, True]


def test_cached_completion_of_the_fallback_names_the_fallback(completions):
    world = World(completions=completions, first=[provider_error("unauthorised")])

    _, second = run(in_turn(world, {}, {}))

    assert (second.cache, second.provider, second.model) == ("exact", "anthropic", "second")


@pytest.mark.parametrize("text", ["", "{}", '{"score": "seven"}', "\x00"])
def test_invalid_cached_completion_is_a_miss(completions, text):
    world = World(completions=completions)

    async def spoilt():
        await world.ask()
        ((key, answer),) = completions.stored.items()
        completions.stored[key] = type(answer)(text=text, provider="p", model="m", is_simulated=False)
        return await world.ask()

    assert run(spoilt()).cache == "none"
    assert [row.cache for row in world.rows] == ["none", "none"]


@pytest.mark.parametrize(
    "error", [ModelsUnavailable(task="t", retry_after_s=1), OSError("away"), ZeroDivisionError("a bug")]
)
def test_failing_cache_is_a_miss(completions, error):
    world = World(completions=completions)
    completions.error = error

    outcomes = run(in_turn(world, {}, {}))

    assert [outcome.value.score for outcome in outcomes] == [7, 7]


def test_hanging_cache_delays_by_its_timeout_only(completions):
    world = World(completions=completions)
    completions.latency_s = 1_000

    async def one():
        await world.ask()
        return world.now_s()

    assert run(one()) == pytest.approx(3)


def test_failures_are_not_cached(completions):
    world = World(completions=completions)
    world.first.always = world.second.always = reply(end="refused")

    run(world.outcome())

    assert completions.stored == {}


def test_a_thousand_concurrent_requests_release_all_slots():
    world = World()
    world.first.latency_s = 0.0

    async def many():
        await asyncio.gather(*(world.ask(f"{number}", cost_owner=ALICE) for number in range(1_000)))
        return world.free_slots

    assert run(many()) == {64}
    assert world.first.in_flight_max == 64


def test_keys_contain_the_account():
    world = World()

    run(in_turn(world, {"cost_owner": ALICE}, {"cost_owner": ALICE, "text": "Another?"}, {"cost_owner": BOB}))

    alice, alice_too, bob = world.first.requests
    assert alice.prefix_key == alice_too.prefix_key
    assert alice.prefix_key != bob.prefix_key
    assert len({alice.completion_key, alice_too.completion_key, bob.completion_key}) == 3
    assert len(alice.prefix_key) <= 64
