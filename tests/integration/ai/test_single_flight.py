"""Single flight: equal concurrent prompts share one call while at least one caller waits."""

import asyncio

import msgspec
import pytest

from shared.llm import CompletionRefused, ModelsUnavailable, Usage
from shared.single_flight import SingleFlight
from tests.fakes.ai import ALICE, BOB, NOBODY, World, reply, trouble
from tests.fakes.virtual_time import run


class Points(msgspec.Struct):
    score: int


def test_equal_concurrent_prompts_share_one_paid_call():
    world = World()

    async def three():
        return await asyncio.gather(*(world.ask() for _ in range(3)))

    first, *others = run(three())

    assert world.asked == 1
    assert (first.cache, first.cost_nanodollars) == ("none", 110)
    assert [(other.value, other.cache, other.usage, other.cost_nanodollars) for other in others] == [
        (first.value, "shared", Usage(), 0)
    ] * 2
    assert [(row.outcome, row.cache, row.cost_nanodollars) for row in world.rows] == [
        ("answered", "none", 110),
        ("answered", "shared", 0),
        ("answered", "shared", 0),
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"text": "Another?"},
        {"spender": BOB},
        {"spender": NOBODY},
        {"task": "lonely"},
        {"stable": ("You judge.About us.",)},
        {"stable": ("You judge.", "About", " us.")},
        {"stable": ("You judge.", "About us.How"), "text": " good?"},
        {"answer": Points},
        {"is_fresh": True},
    ],
)
def test_different_prompts_are_not_shared(other):
    world = World()

    async def both():
        await asyncio.gather(world.ask(), world.ask(**other))

    run(both())

    assert world.asked == 2


def test_consecutive_prompts_are_not_shared():
    world = World()

    async def in_turn():
        await world.ask()
        await world.ask()

    run(in_turn())

    assert world.asked == 2


def test_waiters_get_equal_errors_in_separate_instances():
    world = World()
    world.first.always = world.second.always = reply(end="refused")

    async def two():
        return await asyncio.gather(world.outcome(), world.outcome())

    first, second = run(two())

    assert (type(first), str(first)) == (CompletionRefused, str(second))
    assert type(second) is CompletionRefused
    assert first is not second
    assert [(row.outcome, row.cache) for row in world.rows] == [
        ("refused", "none"),
        ("refused", "none"),
        ("refused", "shared"),
    ]


async def joined(world, count):
    """``count`` callers of the same prompt, half a second into the call."""
    tasks = [asyncio.create_task(world.ask()) for _ in range(count)]
    await asyncio.sleep(0.5)
    return tasks


@pytest.mark.parametrize("leaver", [0, 1])
def test_cancelled_caller_does_not_affect_the_others(leaver):
    world = World()

    async def one_leaves():
        tasks = await joined(world, 3)
        tasks[leaver].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    outcomes = run(one_leaves())

    assert isinstance(outcomes.pop(leaver), asyncio.CancelledError)
    assert [outcome.value.score for outcome in outcomes] == [7, 7]
    assert world.asked == 1


def test_call_is_cancelled_and_recorded_when_all_callers_are_cancelled():
    world = World()

    async def all_leave():
        tasks = await joined(world, 2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return world.first.in_flight

    assert run(all_leave()) == 0
    assert sorted((row.outcome, row.cache, row.is_estimated) for row in world.rows) == [
        ("cancelled", "none", True),
        ("cancelled", "shared", False),
    ]


def test_prompt_during_a_cancelled_call_starts_a_new_one():
    world = World()

    async def leave_and_return():
        (task,) = await joined(world, 1)
        task.cancel()
        await asyncio.sleep(0)
        return await world.ask()

    assert run(leave_and_return()).cache == "none"
    assert world.asked == 2


def test_close_raises_models_unavailable_for_waiters():
    world = World()

    async def close_under_way():
        tasks = await joined(world, 2)
        await world.gateway.close()
        return await asyncio.gather(*tasks, return_exceptions=True)

    outcomes = run(close_under_way())

    assert [type(outcome) for outcome in outcomes] == [ModelsUnavailable] * 2
    assert [row.outcome for row in world.rows] == ["cancelled"]


def test_ended_flights_are_removed():
    flights = SingleFlight()

    async def fail():
        await asyncio.sleep(1)
        raise trouble("unavailable")

    async def many():
        calls = (flights.join(bytes([number % 3]), fail) for number in range(9))
        await asyncio.gather(*calls, return_exceptions=True)

    run(many())

    assert len(flights) == 0


def test_cache_keys_contain_the_account():
    world = World()

    async def two_tenants():
        await world.ask(spender=ALICE)
        await world.ask("Another?", spender=ALICE)
        await world.ask(spender=BOB)

    run(two_tenants())

    alice, alice_too, bob = world.first.requests
    assert alice.cache_key == alice_too.cache_key
    assert alice.cache_key != bob.cache_key
    assert len({alice.answer_key, alice_too.answer_key, bob.answer_key}) == 3
    assert len(alice.cache_key) <= 64
