"""Every fault of every model call: a completion or a named error, within the task's attempts and deadline;
and one row with its cost for every request that a provider received.
"""

import asyncio

import pytest

from shared.llm import Completion, CompletionMalformed, CompletionRefused, ModelsUnavailable
from tests.system.providers.faults import (
    FAULTS,
    HANGING,
    LIMITED,
    MISSHAPEN,
    RETRY_AFTER_S,
    each_of,
    set_fault,
)
from tests.system.providers.world import ANTHROPIC, EMBEDDINGS, LIGHT, OPENAI, STUCK_S, model_catalog

DEADLINE_S = 1.5  # short, because the test waits for it
MODEL_FAULTS = (*FAULTS, "refusal")
# After these faults the gateway uses the next model at once; after the others it retries the same model
# first.
LEFT_AT_ONCE = (*HANGING, *LIMITED, "refusal")
WAITS_MAX_S = 20.0
REPLIES = ("answered", "malformed", "refused")  # outcomes with reported usage


def outcome_of(fault, *, is_embedding=False):
    if fault in HANGING:
        return "timeout"
    if fault in LIMITED:
        return "rate_limited"
    if fault in MISSHAPEN and not is_embedding:
        return "malformed"
    return "refused" if fault == "refusal" else "unavailable"


def refusal_of(fault):
    return {
        "wrong_schema": CompletionMalformed,
        "duplicate": CompletionMalformed,
        "refusal": CompletionRefused,
    }.get(fault, ModelsUnavailable)


@pytest.fixture
def carried_through(outside):
    """Returns a function that runs the work with a deadline that suits the fault and returns the result or
    the error.
    """

    async def carry_through(fault, work):
        gateway = outside.gateway(deadline_s=DEADLINE_S if fault in HANGING else None)
        async with asyncio.timeout(STUCK_S):
            try:
                return await work(gateway)
            except (ModelsUnavailable, CompletionMalformed, CompletionRefused) as refusal:
                return refusal

    return carry_through


@pytest.fixture
def accounted_for(outside, model_rows):
    """Returns a function that checks that every request has a row and returns the outcomes."""

    async def account_for(task):
        rows = await model_rows()
        seen = sum(await outside.asked(OPENAI, ANTHROPIC, EMBEDDINGS))
        assert seen == len(rows) <= model_catalog().task(task).attempts_max
        assert [row["attempt"] for row in rows] == list(range(1, seen + 1))
        assert len({row["call_id"] for row in rows}) == 1
        for row in rows:
            is_reply, has_cost = row["outcome"] in REPLIES, row["cost_nanodollars"] > 0
            assert has_cost or row["outcome"] in ("unavailable", "rate_limited")
            assert row["is_estimated"] == (has_cost and not is_reply)
        assert sum(outside.clock.waits) <= WAITS_MAX_S
        return [row["outcome"] for row in rows]

    return account_for


@each_of(fault for fault in MODEL_FAULTS if fault != "529")
async def test_openai_fault_is_retried_or_falls_back_to_claude(
    outside, carried_through, accounted_for, fault, often
):
    await set_fault(outside.simulators, "openai", "/openai/v1/responses", fault, often)

    answer = await carried_through(fault, lambda gateway: gateway.complete(outside.prompt()))

    outcomes = await accounted_for(LIGHT)
    assert isinstance(answer, Completion)
    is_left = often == "for ever" or fault in LEFT_AT_ONCE
    assert answer.provider == ("anthropic" if is_left else "openai")
    assert outcomes[-1] == "answered"
    assert set(outcomes[:-1]) == {outcome_of(fault)}
    assert len(outcomes) == (2 if often == "once" or fault in LEFT_AT_ONCE else 3)


@each_of(MODEL_FAULTS)
async def test_claude_fault_while_openai_is_down(outside, carried_through, accounted_for, fault, often):
    await set_fault(outside.simulators, "openai", "/openai/v1/responses", "503")
    await set_fault(outside.simulators, "anthropic", "/anthropic/v1/messages", fault, often)

    found = await carried_through(fault, lambda gateway: gateway.complete(outside.prompt()))

    first, second, *outcomes = await accounted_for(LIGHT)
    assert (first, second, outcomes[0]) == ("unavailable", "unavailable", outcome_of(fault))
    # No retry helps: the last candidate uses all the remaining time, a wait of a year is not awaited, and a
    # refusal is final.
    is_hopeless = fault in (*HANGING, "429 for a year", "refusal")
    if often == "once" and not is_hopeless:
        assert (found.provider, outcomes) == ("anthropic", [outcome_of(fault), "answered"])
    else:
        assert isinstance(found, refusal_of(fault))
        assert set(outcomes) == {outcome_of(fault)}


@each_of(fault for fault in FAULTS if fault != "529")
async def test_embeddings_fault_is_retried_or_raised(outside, carried_through, accounted_for, fault, often):
    await set_fault(outside.simulators, "openai", "/openai/v1/embeddings", fault, often)

    found = await carried_through(fault, lambda gateway: gateway.embed(["a loom"], outside.cost_owner))

    outcomes = await accounted_for("embeddings")
    if often == "once" and fault != "429 for a year":
        assert [len(vector) for vector in found.vectors] == [1_536]
        assert outcomes == [outcome_of(fault, is_embedding=True), "answered"]
    else:
        assert isinstance(found, ModelsUnavailable)
        assert set(outcomes) == {outcome_of(fault, is_embedding=True)}


@pytest.mark.parametrize("fault", ["429 for two seconds", "429 until a date"])
async def test_retry_after_of_a_provider_is_respected(outside, carried_through, fault):
    await set_fault(outside.simulators, "openai", "/openai/v1/embeddings", fault, "once")

    await carried_through(fault, lambda gateway: gateway.embed(["a loom"], outside.cost_owner))

    assert RETRY_AFTER_S[fault] - 2 < sum(outside.clock.waits) <= RETRY_AFTER_S[fault]


async def test_retry_after_of_a_year_is_capped_and_not_awaited(outside, carried_through):
    await set_fault(outside.simulators, "openai", "/openai/v1/embeddings", "429 for a year")

    refusal = await carried_through("429", lambda gateway: gateway.embed(["a loom"], outside.cost_owner))

    assert (outside.clock.waits, 60 <= refusal.retry_after_s <= 300) == ([], True)
    assert await outside.asked(EMBEDDINGS) == [1]
