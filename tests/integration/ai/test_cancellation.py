"""Cancellation at any moment: no slot is held, no task is left, and every sent call is recorded."""

import asyncio

import pytest

from tests.fakes.ai import FakeCompletions, World, provider_error, reply
from tests.fakes.virtual_time import run

SCRIPTS = {
    "answered at once": {},
    "by the second": {"first": [provider_error("unavailable"), provider_error("malformed_response")]},
    "mended": {"first": [reply("no")]},
    "refused": {"first": [reply(end="refused")], "second": [reply(end="refused")]},
    "after a pause": {
        "first": [provider_error("rate_limited", retry_after_s=1)],
        "second": [provider_error("timeout")],
    },
    "one at a time": {"slots_max": 1},
}


async def cancelled_at(world, moment):
    """Cancels after ``moment`` short delays; returns whether the call was still in progress."""
    task = asyncio.create_task(world.ask())
    for _ in range(moment):
        if task.done():
            break
        await asyncio.sleep(0.05)  # virtual time: shorter than every wait of the call
        await asyncio.sleep(0)
    was_cancelled = task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return was_cancelled


async def cancelled_in_turn(world, turns):
    """Cancels after single iterations of the loop, without latency of the providers."""
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
def test_cancellation_at_any_moment_leaves_no_slots_or_tasks(name, cancel):
    async def scenario(moment):
        world = World(completions=FakeCompletions(), **SCRIPTS[name])
        if cancel is cancelled_in_turn:
            world.first.latency_s = world.second.latency_s = 0.0
        was_cancelled = await cancel(world, moment)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        in_order = (
            [row.attempt for row in world.rows if row.attempt] == list(range(1, world.asked + 1)),
            world.free_slots == {SCRIPTS[name].get("slots_max", 64)},
            world.first.in_flight + world.second.in_flight == 0,
            not others,
        )
        world.first.script.clear()
        world.second.script.clear()
        afterwards = await world.ask("afterwards")
        return was_cancelled, in_order, afterwards.value.score

    for moment in range(80):
        was_cancelled, in_order, score = run(scenario(moment))
        assert in_order == (True,) * 4, moment
        assert score == 7
        if not was_cancelled:
            break
    assert moment > 5


def test_cancelled_call_has_an_estimated_cost():
    world = World()

    run(cancelled_at(world, 5))

    (row,) = world.rows
    assert (row.outcome, row.is_estimated) == ("cancelled", True)
    assert row.usage.tokens_in > 0
    assert row.cost_nanodollars == row.usage.tokens_in


def test_call_cancelled_while_waiting_for_a_slot_costs_nothing():
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
