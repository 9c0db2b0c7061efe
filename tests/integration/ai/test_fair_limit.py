import asyncio
import random

import pytest

from infrastructure.ai.routing.fair_semaphore import FairSemaphore
from tests.fakes.ai import ALICE, BOB, World
from tests.fakes.virtual_time import run


def test_concurrent_calls_never_exceed_the_slots():
    world = World(slots_max=3)

    async def many():
        await asyncio.gather(*(world.ask(f"{number}") for number in range(20)))
        return world.now_s()

    assert run(many()) == pytest.approx(7)
    assert world.first.in_flight_max == 3


def test_many_calls_of_one_account_do_not_delay_another():
    world = World(slots_max=2)

    async def flood():
        flooding = [asyncio.create_task(world.ask(f"{number}", spender=ALICE)) for number in range(50)]
        await asyncio.sleep(0.5)
        await asyncio.gather(*(world.ask(f"{number}", spender=BOB) for number in range(2)))
        took_s = world.now_s() - 0.5
        await asyncio.gather(*flooding)
        return took_s

    assert run(flood()) == pytest.approx(2.5)


def test_accounts_are_served_round_robin_and_in_order():
    served = []

    async def work(limit, party, number):
        await limit.acquire(party)
        served.append((party, number))
        await asyncio.sleep(1)
        limit.release()

    async def queue():
        limit = FairSemaphore(1)
        await asyncio.gather(
            *(work(limit, "a", number) for number in range(4)),
            *(work(limit, "b", number) for number in range(2)),
        )

    run(queue())

    assert served == [("a", 0), ("a", 1), ("b", 0), ("a", 2), ("b", 1), ("a", 3)]


async def two_for_one_place(world, first_s):
    world.first.script.append((first_s, world.first.always))
    return await asyncio.gather(world.ask("one", task="patient"), world.ask("two"))


def test_wait_for_a_slot_counts_towards_the_deadline():
    world = World(slots_max=1)

    _, second = run(two_for_one_place(world, first_s=30))

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

    _, second = run(two_for_one_place(world, first_s=55))

    assert (second.provider, second.latency_ms) == ("anthropic", pytest.approx(37_000))
    assert [(row.outcome, row.attempt, row.error) for row in world.rows[:2]] == [
        ("timeout", 0, "waited for a place"),
        ("answered", 1, None),
    ]


def test_slot_assigned_during_cancellation_is_passed_on():
    async def leave_when_called():
        limit = FairSemaphore(1)
        await limit.acquire("a")
        leaving, staying = (asyncio.create_task(limit.acquire(party)) for party in "bc")
        await asyncio.sleep(0)
        limit.release()
        leaving.cancel()
        outcomes = await asyncio.gather(leaving, staying, return_exceptions=True)
        return [type(outcome) for outcome in outcomes], limit.free, limit.waiting

    assert run(leave_when_called()) == ([asyncio.CancelledError, type(None)], 0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_no_slot_is_lost_by_random_cancellations(seed):
    chance = random.Random(seed)
    holding = {"now": 0, "most": 0}

    async def work(limit, party):
        await limit.acquire(party)
        holding["now"] += 1
        holding["most"] = max(holding.values())
        try:
            await asyncio.sleep(chance.random())
        finally:
            holding["now"] -= 1
            limit.release()

    async def storm():
        limit = FairSemaphore(3)
        tasks = [asyncio.create_task(work(limit, chance.randrange(5))) for _ in range(200)]
        for _ in range(100):
            await asyncio.sleep(chance.random() / 5)
            chance.choice(tasks).cancel()
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            chance.choice(tasks).cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return limit.free, limit.waiting

    assert run(storm()) == (3, 0)
    assert holding == {"now": 0, "most": 3}
