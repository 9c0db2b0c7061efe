"""A call may be cancelled at any moment: nothing is held, nothing hangs, what was sent is written down."""

import asyncio

import pytest

from tests.infrastructure.ai.fakes import FakeAnswers, World, reply, trouble
from tests.infrastructure.ai.virtual_time import run

SCRIPTS = {
    "answered at once": {},
    "by the second": {"first": [trouble("unavailable"), trouble("garbled")]},
    "mended": {"first": [reply("no")]},
    "refused": {"first": [reply(end="refused")], "second": [reply(end="refused")]},
    "after a pause": {"first": [trouble("rate_limited", retry_after_s=1)], "second": [trouble("timeout")]},
    "one at a time": {"slots_max": 1},
}


async def cancelled_at(world, moment):
    """Cancelled after so many turns of the loop; whether it was still under way."""
    task = asyncio.create_task(world.ask())
    for _ in range(moment):
        if task.done():
            break
        await asyncio.sleep(0.05)  # virtual: every wait of the call is met in its middle
        await asyncio.sleep(0)
    was_cancelled = task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return was_cancelled


async def cancelled_in_turn(world, turns):
    """The same in single turns of the loop, where time stands still between the provider's seconds."""
    task = asyncio.create_task(world.ask())
    for _ in range(turns):
        if task.done():
            break
        await asyncio.sleep(0)
    was_cancelled = task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return was_cancelled


@pytest.mark.parametrize("cancel", [cancelled_at, cancelled_in_turn])
@pytest.mark.parametrize("name", SCRIPTS)
def test_whenever_a_call_is_cancelled_all_is_in_order_afterwards(name, cancel):
    async def scenario(moment):
        world = World(answers=FakeAnswers(), **SCRIPTS[name])
        if cancel is cancelled_in_turn:
            world.first.latency_s = world.second.latency_s = 0.0
        was_cancelled = await cancel(world, moment)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        in_order = (
            [row.attempt for row in world.rows if row.attempt] == list(range(1, world.asked + 1)),
            world.free_places == {SCRIPTS[name].get("slots_max", 64)},
            world.gateway.questions_under_way == 0,
            world.first.in_flight + world.second.in_flight == 0,
            not others,
        )
        world.first.script.clear()
        world.second.script.clear()
        afterwards = await world.ask("afterwards")
        return was_cancelled, in_order, afterwards.value.score

    for moment in range(80):
        was_cancelled, in_order, score = run(scenario(moment))
        assert in_order == (True,) * 5, moment
        assert score == 7
        if not was_cancelled:
            break
    assert moment > 5


def test_what_was_sent_before_it_was_cancelled_is_estimated():
    world = World()

    run(cancelled_at(world, 5))

    (row,) = world.rows
    assert (row.outcome, row.is_estimated) == ("cancelled", True)
    assert row.usage.tokens_in > 0
    assert row.cost_nanodollars == row.usage.tokens_in


def test_who_is_cancelled_in_the_queue_has_cost_nothing():
    world = World(slots_max=1)

    async def leave_the_queue():
        served = asyncio.create_task(world.ask("served"))
        await asyncio.sleep(0.1)
        waiting = asyncio.create_task(world.ask("waiting"))
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.gather(served, waiting, return_exceptions=True)

    run(leave_the_queue())

    row = world.rows[0]
    assert (row.outcome, row.attempt, row.cost_nanodollars, row.is_estimated) == ("cancelled", 0, 0, False)
    assert len(world.rows) == 2
