import asyncio

import pytest

from tests.fakes.ai import World
from tests.fakes.virtual_time import run


def test_concurrent_calls_never_exceed_the_slots():
    world = World(slots_max=3)

    async def many():
        await asyncio.gather(*(world.ask(f"{number}") for number in range(20)))
        return world.now_s()

    assert run(many()) == pytest.approx(7)
    assert world.first.in_flight_max == 3


async def two_for_one_slot(world, first_s):
    world.first.script.append((first_s, world.first.always))
    return await asyncio.gather(world.ask("one", task="patient"), world.ask("two"))


def test_wait_for_a_slot_counts_towards_the_deadline():
    world = World(slots_max=1)

    _, second = run(two_for_one_slot(world, first_s=30))

    assert second.provider == "openai"
    assert world.first.deadlines_s[1] == pytest.approx(36 - 30)


def test_long_queue_does_not_open_the_breaker():
    world = World(slots_max=2)

    async def crowd_after_a_known_pace():
        await asyncio.gather(*(world.ask(f"before {number}") for number in range(20)))
        return await asyncio.gather(*(world.ask(f"{number}") for number in range(60)))

    answers = run(crowd_after_a_known_pace())

    assert {answer.provider for answer in answers} == {"openai"}
    assert max(answer.latency_ms for answer in answers) == pytest.approx(30_000)
    assert {row.outcome for row in world.rows} == {"answered"}


def test_timeout_after_a_late_start_is_not_a_breaker_failure():
    world = World(slots_max=1)
    world.first.script.extend([(33, world.first.always), *[(9, world.first.always)] * 5])

    async def one_long_and_five_late():
        questions = [world.ask(f"{number}") for number in range(5)]
        answers = await asyncio.gather(world.ask("long", task="patient"), *questions)
        return answers[1:], world.gateway.breakers()["openai/first"].failures_in_a_row

    late, failures = run(one_long_and_five_late())

    assert {answer.provider for answer in late} == {"anthropic"}
    assert failures == 0


def test_call_without_a_slot_in_time_falls_back():
    world = World(slots_max=1)

    _, second = run(two_for_one_slot(world, first_s=55))

    assert (second.provider, second.latency_ms) == ("anthropic", pytest.approx(37_000))
    assert [(row.outcome, row.attempt, row.error) for row in world.rows[:2]] == [
        ("timeout", 0, "waited for a slot"),
        ("answered", 1, None),
    ]
