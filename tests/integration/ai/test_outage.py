"""Outage of a provider for minutes: only the first calls are delayed, and probes detect the recovery."""

import asyncio

import pytest

from infrastructure.ai.routing.recovery_probes import TASK as PROBE
from shared.llm import ModelsUnavailable
from tests.fakes.ai import NO_OWNER, World, provider_error
from tests.fakes.virtual_time import run

INTERVAL_S = 0.2
OUTAGES = {"answers 503": provider_error("unavailable"), "hangs": "hangs", "hangs for ever": "hangs for ever"}


async def a_thousand_calls(world):
    """One call every fifth of a second. Returns the latency of each beyond the fallback's own."""

    async def one(number):
        await asyncio.sleep(number * INTERVAL_S)
        began_s = world.now_s()
        answer = await world.ask(f"{number}")
        assert answer.provider == "anthropic"
        return world.now_s() - began_s - world.second.latency_s

    return await asyncio.gather(*(one(number) for number in range(1_000)))


def probes_in(rows):
    return [row for row in rows if row.task == PROBE]


@pytest.mark.parametrize("outage", OUTAGES)
def test_during_an_outage_the_fallback_answers_without_delay_and_probes_are_rare(outage):
    world = World()
    world.first.always = OUTAGES[outage]
    world.first.latency_s = 0.1

    added_s = run(a_thousand_calls(world))

    # A hang is detected after the first calls have waited 36 seconds; then all calls fall back.
    slow = 10 if outage == "answers 503" else 40 / INTERVAL_S
    assert sum(seconds > 0.05 for seconds in added_s) <= slow
    assert max(added_s[int(slow) :]) < 0.001
    # One probe at a time, at growing intervals, without a cost owner.
    probes = probes_in(world.rows)
    assert 1 <= len(probes) <= 4
    assert {row.cost_owner for row in probes} == {NO_OWNER}
    assert {row.outcome for row in probes} <= {"unavailable", "timeout"}


def test_hang_is_detected_sooner_with_latency_samples():
    world = World()

    async def hang_after_twenty():
        await asyncio.gather(*(world.ask(f"before {number}") for number in range(20)))
        world.first.always = "hangs"
        return await a_thousand_calls(world)

    added_s = run(hang_after_twenty())

    assert sum(seconds > 0.05 for seconds in added_s) <= 6 / INTERVAL_S


def test_queued_calls_fall_back_when_the_breaker_opens():
    world = World(slots_max=5)
    world.first.always = "hangs"
    world.second.latency_s = 0.0

    async def crowd():
        await asyncio.gather(*(world.ask(f"{number}") for number in range(100)))
        return world.now_s()

    assert run(crowd()) == pytest.approx(36, abs=0.1)
    assert len(world.first.requests) == 5


@pytest.mark.parametrize("outage", OUTAGES)
def test_probe_detects_the_recovery(outage):
    world = World()
    world.first.always = OUTAGES[outage]

    async def outage_and_recovery():
        for number in range(5):
            await world.ask(f"{number}")
        during = world.gateway.breakers()["openai/first"].state
        world.first.always = world.second.always
        await asyncio.sleep(11)
        probing = await world.ask("one that starts the probe")
        await asyncio.sleep(1.5)
        after = world.gateway.breakers()["openai/first"].state
        return during, probing.provider, after, (await world.ask("next")).provider

    assert run(outage_and_recovery()) == ("open", "anthropic", "closed", "openai")
    assert [row.outcome for row in probes_in(world.rows)] == ["answered"]


def test_probe_detects_the_recovery_of_a_slow_provider():
    world = World()
    world.first.always = provider_error("unavailable")

    async def slow_recovery():
        for number in range(5):
            await world.ask(f"{number}")
        world.first.always, world.first.latency_s = world.second.always, 8
        await asyncio.sleep(11)
        await world.ask("starts the probe")
        await asyncio.sleep(8)
        return (await world.ask("next")).provider

    assert run(slow_recovery()) == "openai"


def test_without_fallback_the_request_is_the_probe():
    world = World()
    world.first.always = provider_error("unavailable")

    async def alone():
        for number in range(2):
            await world.outcome(f"{number}", task="lonely")
        refused = await world.outcome("while it is open", task="lonely")
        world.first.always = world.second.always
        await asyncio.sleep(10)
        return refused, await world.ask("after it", task="lonely")

    refused, answer = run(alone())

    assert isinstance(refused, ModelsUnavailable)
    assert 1 <= refused.retry_after_s <= 10
    assert [row.outcome for row in world.rows][-2:] == ["skipped", "answered"]
    assert answer.value.score == 7
    assert probes_in(world.rows) == []


def test_cancelled_probe_permits_the_next():
    world = World()
    world.first.always = provider_error("unavailable")

    async def cancelled_probe():
        for number in range(2):
            await world.outcome(f"{number}", task="lonely")
        world.first.always = world.second.always
        await asyncio.sleep(10)
        probe = asyncio.create_task(world.ask("cancelled", task="lonely"))
        await asyncio.sleep(0.5)
        meanwhile = world.gateway.breakers()["openai/first"]
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        return meanwhile, await world.ask("next", task="lonely")

    meanwhile, answer = run(cancelled_probe())

    assert (meanwhile.state, meanwhile.blocked_for_s) == ("half_open", 0)
    assert answer.value.score == 7


def test_outage_of_both_providers_fails_at_once_and_is_recorded():
    world = World()
    world.first.always = world.second.always = provider_error("unavailable")

    async def both_open():
        for number in range(6):
            await world.outcome(f"{number}")
        began_s, rows = world.now_s(), len(world.rows)
        outcome = await world.outcome("now")
        return outcome, world.now_s() - began_s, world.rows[rows:]

    outcome, took_s, rows = run(both_open())

    assert isinstance(outcome, ModelsUnavailable)
    assert took_s == 0
    assert [(row.outcome, row.attempt, row.cost_nanodollars) for row in rows] == [("skipped", 0, 0)]


def test_cancelled_calls_do_not_affect_the_breaker():
    world = World()

    async def cancel_many():
        for number in range(10):
            call = asyncio.create_task(world.ask(f"{number}"))
            await asyncio.sleep(0.5)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        return world.gateway.breakers()["openai/first"]

    assert run(cancel_many()) == ("closed", 0, 0)


def test_close_cancels_and_records_a_probe():
    world = World()
    world.first.always = provider_error("unavailable")

    async def close_while_probing():
        for number in range(5):
            await world.ask(f"{number}")
        world.first.always = "hangs"
        await asyncio.sleep(11)
        await world.ask("starts the probe")
        await world.gateway.close()

    run(close_while_probing())

    assert [row.outcome for row in probes_in(world.rows)] == ["cancelled"]
    assert (world.first.is_closed, world.second.is_closed) == (True, True)


def test_prepare_prepares_every_provider():
    world = World()

    run(world.gateway.prepare())

    assert (world.first.is_prepared, world.second.is_prepared) == (True, True)
