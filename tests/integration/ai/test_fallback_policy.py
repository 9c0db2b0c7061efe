"""Fallback rules: the next candidate, its delay and its request."""

import asyncio

import pytest
from structlog.testing import capture_logs

from shared.llm import CompletionMalformed, CompletionRefused, ModelsUnavailable, PromptRejected
from tests.fakes.ai import World, provider_error, reply
from tests.fakes.virtual_time import run

MALFORMED = reply('{"score": "seven"}')


async def after(world, **options):
    outcome = await world.outcome(**options)
    return outcome, world.now_s()


def test_outage_of_first_model_causes_one_quick_retry_then_fallback():
    world = World(chance=1.0)
    world.first.always = provider_error("unavailable")

    answer, took_s = run(after(world))

    assert answer.provider == "anthropic"
    assert [row.provider for row in world.rows] == ["openai", "openai", "anthropic"]
    assert world.slept_s == [0.5]
    assert took_s == pytest.approx(3.5)


@pytest.mark.parametrize("kind", ["timeout", "rate_limited", "unauthorised", "unknown_model"])
def test_persistent_failure_falls_back_at_once(kind):
    world = World(first=[provider_error(kind)])

    run(after(world))

    assert [row.provider for row in world.rows] == ["openai", "anthropic"]
    assert world.slept_s == []


def test_without_fallback_two_retries_back_off_from_three_seconds():
    world = World(chance=1.0)
    world.first.always = provider_error("unavailable")

    outcome, _ = run(after(world, task="lonely"))

    assert isinstance(outcome, ModelsUnavailable)
    assert world.slept_s == [3.0, 6.0]
    assert world.asked == 3


def test_retry_delays_have_full_jitter():
    world = World(chance=0.1)
    world.first.always = provider_error("unavailable")

    run(after(world, task="lonely"))

    assert world.slept_s == pytest.approx([0.3, 0.6])


def test_retry_after_is_respected():
    world = World(first=[provider_error("rate_limited", retry_after_s=12)])

    answer, took_s = run(after(world, task="lonely"))

    assert answer.value.score == 7
    assert world.slept_s == [12]
    assert took_s == pytest.approx(14)


def test_retry_after_is_respected_up_to_the_wait_budget():
    world = World()
    world.first.always = provider_error("rate_limited", retry_after_s=12)

    outcome, _ = run(after(world, task="lonely"))

    assert world.slept_s == [12]
    assert outcome.retry_after_s == 12


def test_long_retry_after_is_capped_and_passed_to_the_caller():
    world = World()
    world.first.always = provider_error("unavailable", retry_after_s=1e9)

    outcome, took_s = run(after(world, task="lonely"))

    assert (world.asked, outcome.retry_after_s, took_s) == (1, 300, 1)


def test_request_during_pause_of_the_only_model_waits_for_its_end():
    world = World(first=[provider_error("rate_limited", retry_after_s=4)])

    async def two():
        first = asyncio.create_task(world.ask("one", task="lonely"))
        await asyncio.sleep(2)
        second = await world.ask("two", task="lonely")
        await first
        return second

    assert run(two()).latency_ms == pytest.approx(4_000)
    assert world.slept_s == [4, pytest.approx(3)]
    assert world.asked == 3


def test_hanging_model_leaves_time_for_the_fallback():
    world = World(first=["hangs"])

    answer, took_s = run(after(world))

    assert answer.provider == "anthropic"
    assert took_s == pytest.approx(37)
    assert world.first.deadlines_s == [36]
    assert world.second.deadlines_s == [pytest.approx(24)]


def test_attempt_deadline_is_a_multiple_of_the_p95_latency():
    world = World()

    async def hang_after_twenty():
        for number in range(20):
            await world.ask(f"{number}")
        world.first.always = "hangs"
        await world.ask("another")

    run(hang_after_twenty())

    assert world.first.deadlines_s[-1] == 5


@pytest.mark.parametrize("task", ["write", "lonely"])
def test_adapter_that_ignores_its_deadline_is_cancelled(task):
    world = World(first=["hangs for ever"])

    answer, took_s = run(after(world, task=task))

    assert answer.value.score == 7
    assert took_s < 60
    assert [row.outcome for row in world.rows] == ["timeout", "answered"]


def test_malformed_completion_is_repaired_once_by_the_same_model():
    world = World(first=[MALFORMED])

    answer, _ = run(after(world))

    first, second = world.first.requests
    assert answer.provider == "openai"
    assert (first.malformed_completion, first.validation_error, first.is_fresh) == (None, None, False)
    assert second.malformed_completion == MALFORMED.text
    assert "Expected `int`, got `str`" in second.validation_error
    assert second.is_fresh
    assert second.completion_key != first.completion_key


def test_second_malformed_completion_falls_back_without_repair():
    world = World(first=[MALFORMED, MALFORMED])

    answer, _ = run(after(world))

    assert answer.provider == "anthropic"
    assert world.second.requests[0].malformed_completion is None
    assert [row.outcome for row in world.rows] == ["malformed", "malformed", "answered"]


def test_malformed_completions_of_all_models_raise_completion_malformed():
    world = World()
    world.first.always = world.second.always = MALFORMED

    outcome, _ = run(after(world))

    assert isinstance(outcome, CompletionMalformed)
    assert [row.provider for row in world.rows] == ["openai", "openai", "anthropic"]


def test_repair_prompt_contains_only_the_start_of_a_long_completion():
    world = World(first=[reply("x" * 100_000)])

    run(after(world))

    assert len(world.first.requests[1].malformed_completion) == 20_000


def test_truncated_completion_is_retried_with_a_larger_output_limit():
    world = World(first=[reply('{"score', end="truncated")])

    run(after(world))

    first, second = world.first.requests
    assert (first.output_tokens_max, second.output_tokens_max) == (3_000, 10_000)
    assert second.malformed_completion is None


def test_truncated_reply_with_valid_json_is_accepted():
    world = World(first=[reply(end="truncated")])

    answer, _ = run(after(world))

    assert (answer.value.score, world.asked) == (7, 1)


def test_refusal_falls_back_once():
    world = World()
    world.first.always = world.second.always = reply(end="refused")

    outcome, _ = run(after(world))

    assert isinstance(outcome, CompletionRefused)
    assert outcome.model == "second"
    assert [row.outcome for row in world.rows] == ["refused", "refused"]


def test_refusal_is_raised_when_the_fallback_is_unavailable():
    world = World(first=[reply(end="refused")])
    world.second.always = provider_error("unauthorised")

    outcome, _ = run(after(world))

    assert isinstance(outcome, CompletionRefused)


def test_invalid_prompt_falls_back_only_to_a_larger_context():
    wider, narrower = World(first=[provider_error("invalid")]), World(second=[provider_error("invalid")])
    narrower.first.always = provider_error("unauthorised")

    wide_outcome, _ = run(after(wider))
    narrow_outcome, _ = run(after(narrower))

    assert wide_outcome.provider == "anthropic"
    assert isinstance(narrow_outcome, PromptRejected)
    assert narrower.asked == 2


def test_invalid_prompt_is_not_retried():
    world = World()
    world.first.always = provider_error("invalid")

    outcome, _ = run(after(world, task="lonely"))

    assert isinstance(outcome, PromptRejected)
    assert world.asked == 1


@pytest.mark.parametrize("kind", ["unauthorised", "unknown_model"])
def test_failure_that_needs_an_operator_is_logged(kind):
    world = World(first=[provider_error(kind)])

    with capture_logs() as logs:
        run(after(world))

    assert [(entry["event"], entry["error"]) for entry in logs] == [("provider_rejected_us", kind)]


def test_request_contains_only_parameters_that_the_model_supports():
    world = World(first=[provider_error("unauthorised")])

    run(after(world))

    (first,), (second,) = world.first.requests, world.second.requests
    assert (first.effort, first.temperature) == ("low", None)
    assert (second.effort, second.temperature) == (None, None)
    assert (first.output_tokens_max, second.output_tokens_max) == (3_000, 1_000)
    assert (first.response_format.name, first.cached_prefix) == ("Score", ("You judge.", "About us."))
    assert first.prefix_key == second.prefix_key
    assert first.completion_key != second.completion_key
