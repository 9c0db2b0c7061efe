"""Every fault at every position: a completion or a domain error, within attempts and deadline, and one usage
record per attempt.
"""

import pytest

from shared.llm import (
    Completion,
    CompletionMalformed,
    CompletionRefused,
    ModelsUnavailable,
    PromptRejected,
)
from tests.fakes.ai import World, provider_error, reply
from tests.fakes.virtual_time import run

TROUBLES = (
    "timeout",
    "connection",
    "rate_limited",
    "unavailable",
    "malformed_response",
    "unauthorised",
    "unknown_model",
    "invalid",
)
FAULTS = {
    **{kind: provider_error(kind) for kind in TROUBLES},
    "rate limited for a second": provider_error("rate_limited", retry_after_s=1),
    "rate limited for ever": provider_error("rate_limited", retry_after_s=1e9),
    "rate limited for nonsense": provider_error("rate_limited", retry_after_s=float("nan")),
    "unavailable for an hour": provider_error("unavailable", retry_after_s=3600),
    "refused before it was sent": provider_error("connection", was_sent=False),
    "hangs": "hangs",
    "hangs for ever": "hangs for ever",
    "refuses": reply("", end="refused"),
    "cut short": reply('{"score": 7', end="truncated"),
    "empty": reply(""),
    "html": reply("<html>502</html>"),
    "null": reply("null"),
    "another type": reply('{"score": "seven"}'),
    "a missing field": reply("{}"),
    "two documents": reply('{"score": 7}{"score": 8}'),
    "bottomless": reply("[" * 100_000),
    "endless": reply('{"score": 7, "x": "' + "a" * 1_100_000 + '"}'),
    "half a character": reply('{"score": "\ud800"}'),
    "not a number": reply('{"score": NaN}'),
}
NAMED = (ModelsUnavailable, CompletionMalformed, CompletionRefused, PromptRejected)
DEADLINE_S = 60
ATTEMPTS_MAX = 5


async def carried_through(world, task="write"):
    outcome = await world.outcome(task=task)
    return outcome, world.now_s(), world.free_slots


@pytest.mark.parametrize("place", range(ATTEMPTS_MAX))
@pytest.mark.parametrize("task", ["write", "lonely"])
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_at_any_position_ends_in_a_completion_or_domain_error(fault, task, place):
    """Earlier attempts are unavailable: first those of the first model, then those of the second."""
    world = World(
        first=[provider_error("unavailable")] * min(place, 2) + [FAULTS[fault]] * (place < 2),
        second=[provider_error("unavailable")] * (place - 2) + [FAULTS[fault]] if place >= 2 else [],
    )

    outcome, took_s, places = run(carried_through(world, task))

    assert isinstance(outcome, (Completion, *NAMED))
    assert took_s <= DEADLINE_S + 2
    assert world.asked <= ATTEMPTS_MAX
    assert [row.attempt for row in world.rows] == list(range(1, world.asked + 1))
    assert len({row.call_id for row in world.rows}) == 1
    assert places == {64}


@pytest.mark.parametrize("first", FAULTS)
def test_two_failing_providers_end_in_a_domain_error(first):
    for second, fault in FAULTS.items():
        world = World()
        world.first.always, world.second.always = FAULTS[first], fault

        outcome, took_s, _ = run(carried_through(world))

        assert isinstance(outcome, NAMED), second
        assert took_s <= DEADLINE_S + 2, second
        assert world.asked <= ATTEMPTS_MAX, second
        assert [row.attempt for row in world.rows] == list(range(1, world.asked + 1)), second
        assert "answered" not in {row.outcome for row in world.rows}, second


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "invalid"])
def test_fallback_answers_after_any_fault_of_the_first_provider(fault):
    world = World()
    world.first.always = FAULTS[fault]

    outcome, _, _ = run(carried_through(world))

    assert (outcome.value.score, outcome.provider, outcome.model) == (7, "anthropic", "second")
    assert [row.outcome for row in world.rows][-1] == "answered"
    assert len(world.second.requests) == 1


@pytest.mark.parametrize(
    "fault",
    [fault for fault in FAULTS if fault not in ("invalid", "unauthorised", "unknown_model", "refuses")],
)
def test_only_model_answers_after_one_fault(fault):
    world = World(first=[FAULTS[fault]])

    outcome, _, _ = run(carried_through(world, "lonely"))

    expected = (
        ModelsUnavailable if fault in ("rate limited for ever", "unavailable for an hour") else Completion
    )
    assert isinstance(outcome, expected)


def test_unexpected_adapter_error_is_recorded_and_raised():
    world = World(first=[ZeroDivisionError("a bug")])

    outcome, _, places = run(carried_through(world))

    assert isinstance(outcome, ZeroDivisionError)
    assert [(row.outcome, row.error) for row in world.rows] == [("unavailable", "ZeroDivisionError")]
    assert places == {64}
