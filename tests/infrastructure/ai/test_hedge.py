"""When the first takes longer than nearly always, the second is asked too."""

import asyncio

import pytest

from tests.infrastructure.ai.fakes import World, reply, trouble
from tests.infrastructure.ai.virtual_time import run


async def after_twenty(world, *script):
    """A question to a model of known pace: a second, nearly always."""
    for number in range(20):
        await world.ask(f"{number}")
    world.rows.clear()
    world.first.script.extend(script)
    began_s = world.now_s()
    answer = await world.ask("now")
    return answer, world.now_s() - began_s


def test_a_slow_first_is_overtaken_and_ended():
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


def test_a_first_that_is_only_a_little_late_wins():
    world = World(is_hedged=True)

    answer, took_s = run(after_twenty(world, (1.5, reply())))

    assert (answer.provider, took_s) == ("openai", pytest.approx(1.5))
    assert sorted((row.provider, row.outcome) for row in world.rows) == [
        ("anthropic", "cancelled"),
        ("openai", "answered"),
    ]


def test_a_second_that_fails_does_not_spoil_the_first():
    world = World(is_hedged=True, second=[trouble("unauthorised")])

    answer, took_s = run(after_twenty(world, (3, reply())))

    assert (answer.provider, took_s) == ("openai", pytest.approx(3))


def test_a_first_in_time_asks_nobody_else():
    world = World(is_hedged=True)

    run(after_twenty(world, (0.9, reply())))

    assert world.second.requests == []


def test_a_first_that_fails_in_time_goes_the_usual_way():
    world = World(is_hedged=True)

    answer, _ = run(after_twenty(world, (0.5, trouble("unavailable"))))

    assert answer.provider == "openai"
    assert [row.outcome for row in world.rows] == ["unavailable", "answered"]


def test_without_a_known_pace_nobody_is_overtaken():
    world = World(is_hedged=True, first=[(30, reply())])

    assert run(world.ask()).provider == "openai"


def test_it_is_off_unless_asked_for():
    world = World()

    answer, took_s = run(after_twenty(world, (4, reply())))

    assert (answer.provider, took_s) == ("openai", pytest.approx(4))


def test_who_cancels_ends_both():
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


def test_both_together_stay_within_the_attempts():
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
