"""Hedging: the second candidate starts when the first exceeds its p95 latency."""

import asyncio

import pytest

from tests.fakes.ai import World, reply, trouble
from tests.fakes.virtual_time import run


async def after_twenty(world, *script):
    """Asks after twenty calls that took a second each."""
    for number in range(20):
        await world.ask(f"{number}")
    world.rows.clear()
    world.first.script.extend(script)
    began_s = world.now_s()
    answer = await world.ask("now")
    return answer, world.now_s() - began_s


def test_slow_first_candidate_is_cancelled_when_the_second_answers():
    world = World(is_hedged=True)

    answer, took_s = run(after_twenty(world, (30, reply())))

    assert answer.provider == "anthropic"
    assert took_s == pytest.approx(2)
    assert sorted((row.provider, row.outcome) for row in world.rows) == [
        ("anthropic", "answered"),
        ("openai", "cancelled"),
    ]
    assert len({row.call_id for row in world.rows}) == 1
    assert answer.cost_nanodollars == sum(row.cost_nanodollars for row in world.rows)
    assert world.first.in_flight == 0


def test_slightly_late_first_candidate_wins():
    world = World(is_hedged=True)

    answer, took_s = run(after_twenty(world, (1.5, reply())))

    assert (answer.provider, took_s) == ("openai", pytest.approx(1.5))
    assert sorted((row.provider, row.outcome) for row in world.rows) == [
        ("anthropic", "cancelled"),
        ("openai", "answered"),
    ]


def test_failure_of_the_second_candidate_does_not_affect_the_first():
    world = World(is_hedged=True, second=[trouble("unauthorised")])

    answer, took_s = run(after_twenty(world, (3, reply())))

    assert (answer.provider, took_s) == ("openai", pytest.approx(3))


def test_first_candidate_in_time_starts_no_second():
    world = World(is_hedged=True)

    run(after_twenty(world, (0.9, reply())))

    assert world.second.requests == []


def test_early_failure_of_the_first_candidate_is_retried():
    world = World(is_hedged=True)

    answer, _ = run(after_twenty(world, (0.5, trouble("unavailable"))))

    assert answer.provider == "openai"
    assert [row.outcome for row in world.rows] == ["unavailable", "answered"]


def test_without_latency_samples_no_second_candidate_starts():
    world = World(is_hedged=True, first=[(30, reply())])

    assert run(world.ask()).provider == "openai"


def test_hedging_is_off_by_default():
    world = World()

    answer, took_s = run(after_twenty(world, (4, reply())))

    assert (answer.provider, took_s) == ("openai", pytest.approx(4))


def test_cancellation_ends_both_calls():
    world = World(is_hedged=True)
    world.second.latency_s = 30

    async def cancelled():
        for number in range(20):
            await world.ask(f"{number}")
        world.rows.clear()
        world.first.latency_s = 30
        call = asyncio.create_task(world.ask("now"))
        await asyncio.sleep(5)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        return world.first.in_flight, world.second.in_flight

    assert run(cancelled()) == (0, 0)
    assert [row.outcome for row in world.rows] == ["cancelled", "cancelled"]


def test_hedged_calls_count_as_attempts():
    world = World(is_hedged=True)

    async def both_fail():
        for number in range(20):
            await world.ask(f"{number}")
        world.rows.clear()
        world.first.always = world.second.always = (2, trouble("unavailable"))
        await world.outcome("now")

    run(both_fail())

    assert 2 <= len(world.rows) <= 5
    assert sorted(row.attempt for row in world.rows) == list(range(1, len(world.rows) + 1))
