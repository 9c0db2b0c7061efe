import pytest

from infrastructure.ai.providers.base import EmbeddingReply
from shared.llm import EmbeddedTexts, ModelsUnavailable, PromptRejected, Usage
from tests.fakes.ai import ALICE, World, provider_error
from tests.fakes.virtual_time import run


async def embedded(world, texts):
    try:
        return await world.gateway.embed(texts, ALICE)
    except (ModelsUnavailable, PromptRejected) as error:
        return error


def test_texts_become_vectors_in_their_order():
    world = World()

    result = run(embedded(world, ["a", "bbb", "cc"]))

    assert result == EmbeddedTexts(
        vectors=((1.0,), (3.0,), (2.0,)),
        model="vectors",
        is_simulated=True,
        usage=Usage(tokens_in=3),
        cost_nanodollars=3,
    )
    assert [(row.task, row.model, row.outcome, row.attempt) for row in world.rows] == [
        ("embeddings", "vectors", "answered", 1)
    ]


def test_no_texts_cause_no_call():
    world = World()

    result = run(embedded(world, []))

    assert (result.vectors, result.cost_nanodollars, world.rows) == ((), 0, [])


def test_blank_text_is_sent_as_a_placeholder():
    world = World()

    result = run(embedded(world, ["", " \n\t", "word"]))

    assert world.first.requests == [(("-", "-", "word"), "vectors")]
    assert len(result.vectors) == 3


def test_many_texts_are_batched_in_order():
    world = World()

    result = run(embedded(world, ["x" * (number % 7 + 1) for number in range(5_000)]))

    assert [len(texts) for texts, _ in world.first.requests] == [2_048, 2_048, 904]
    assert result.vectors == tuple((float(number % 7 + 1),) for number in range(5_000))
    assert (result.usage.tokens_in, result.cost_nanodollars) == (5_000, 5_000)
    assert len({row.call_id for row in world.rows}) == 3


def test_long_texts_are_batched_by_tokens():
    world = World()

    run(embedded(world, ["x" * 30_000] * 100))

    assert [len(texts) for texts, _ in world.first.requests] == [19, 19, 19, 19, 19, 5]


@pytest.mark.parametrize(
    "kind", ["timeout", "connection", "rate_limited", "unavailable", "malformed_response"]
)
def test_temporary_failure_is_retried(kind):
    world = World(first=[provider_error(kind)])

    result = run(embedded(world, ["a"]))

    assert result.vectors == ((1.0,),)
    assert [row.attempt for row in world.rows] == [1, 2]


def test_reply_with_too_few_vectors_is_retried():
    short = EmbeddingReply(vectors=((1.0,),), usage=Usage(tokens_in=2), model="m", is_simulated=True)
    world = World(first=[short])

    result = run(embedded(world, ["a", "b"]))

    assert len(result.vectors) == 2
    assert [row.outcome for row in world.rows] == ["unavailable", "answered"]


def test_outage_uses_all_attempts_and_opens_the_breaker():
    world = World()
    world.first.always = provider_error("unavailable")

    async def twice():
        outcomes = [await embedded(world, ["a"]), await embedded(world, ["b"]), await embedded(world, ["c"])]
        return outcomes, world.gateway.breakers()["openai/vectors"].state

    outcomes, state = run(twice())

    assert [type(outcome) for outcome in outcomes] == [ModelsUnavailable] * 3
    assert state == "open"
    assert [row.outcome for row in world.rows] == ["unavailable"] * 5 + ["skipped"]


def test_text_that_is_too_long_raises_prompt_rejected():
    world = World(first=[provider_error("invalid")])

    assert isinstance(run(embedded(world, ["x" * 100_000])), PromptRejected)
