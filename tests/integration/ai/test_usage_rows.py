"""Usage records and their costs."""

import pytest
from structlog.testing import capture_logs

from shared.llm import Usage
from tests.fakes.ai import ALICE, NO_OWNER, START, TABLE, USAGE, World, provider_error, reply
from tests.fakes.virtual_time import run


def test_completion_names_its_model_and_cost():
    world = World()

    answer = run(world.ask())

    assert (answer.value.score, answer.provider, answer.model) == (7, "openai", "first")
    assert (answer.is_simulated, answer.cache, answer.usage) == (True, "none", USAGE)
    assert answer.cost_nanodollars == 110
    assert answer.latency_ms == pytest.approx(1_000)


def test_usage_record_names_owner_task_model_and_outcome():
    world = World(first=[reply(gateway_log_id="log-1")])

    run(world.ask())

    (row,) = world.rows
    assert (row.cost_owner, row.task, row.provider, row.model) == (ALICE, "write", "openai", "first")
    assert (row.outcome, row.attempt, row.cache, row.is_simulated) == ("answered", 1, "none", True)
    assert (row.usage, row.cost_nanodollars, row.is_estimated) == (USAGE, 110, False)
    assert (row.error, row.gateway_log_id) == (None, "log-1")
    assert row.latency_ms == pytest.approx(1_000)
    assert (row.at - START).total_seconds() == pytest.approx(1)


def test_cost_of_a_completion_is_the_sum_of_its_attempts():
    world = World(first=[reply("no"), reply("no")])

    answer = run(world.ask())

    assert [row.cost_nanodollars for row in world.rows] == [110, 110, 220]
    assert answer.cost_nanodollars == 440
    assert answer.usage == USAGE


@pytest.mark.parametrize(
    ("kind", "was_sent", "is_estimated"),
    [
        ("timeout", True, True),
        ("connection", True, True),
        ("malformed_response", True, True),
        ("timeout", False, False),
        ("connection", False, False),
        ("rate_limited", True, False),
        ("unavailable", True, False),
        ("unauthorised", True, False),
        ("unknown_model", True, False),
        ("invalid", True, False),
    ],
)
def test_failed_attempt_that_may_be_charged_has_an_estimated_cost(kind, was_sent, is_estimated):
    world = World(first=[provider_error(kind, was_sent=was_sent)])

    run(world.outcome("x" * 4_000))

    row = world.rows[0]
    assert (row.is_estimated, row.error) == (is_estimated, f"{kind} 503")
    assert (row.usage.tokens_in > 1_000) == is_estimated
    assert row.cost_nanodollars == row.usage.tokens_in
    assert row.usage.tokens_out == 0


def test_completion_from_the_gateway_cache_costs_nothing():
    world = World(first=[reply(is_from_gateway=True)])

    answer = run(world.ask())

    assert (answer.cache, answer.usage, answer.cost_nanodollars) == ("gateway", Usage(), 0)
    assert [(row.cache, row.cost_nanodollars) for row in world.rows] == [("gateway", 0)]


def test_unpriced_model_has_unknown_cost_and_is_logged_once():
    world = World(table=TABLE.replace("first", "unpriced"))

    async def twice():
        return [await world.ask("one"), await world.ask("two")]

    with capture_logs() as logs:
        answers = run(twice())

    assert [answer.cost_nanodollars for answer in answers] == [None, None]
    assert [row.cost_nanodollars for row in world.rows] == [None, None]
    assert [(entry["event"], entry["model"]) for entry in logs] == [("price_missing", "unpriced")]


def test_one_unknown_price_makes_the_total_unknown():
    world = World(table=TABLE.replace("first", "unpriced"), first=[reply("no"), reply("no")])

    answer = run(world.ask())

    assert [row.cost_nanodollars for row in world.rows] == [None, None, 220]
    assert answer.cost_nanodollars is None


def test_usage_records_and_logs_contain_no_prompt_or_completion():
    world = World(first=[reply("CANARY"), provider_error("unauthorised")])

    with capture_logs() as logs:
        run(world.ask("CANARY", cached_prefix=("CANARY",)))

    assert "CANARY" not in f"{world.rows}{logs}"


def test_request_without_account_is_recorded_without_account():
    world = World()

    run(world.ask(cost_owner=NO_OWNER))

    assert [row.cost_owner for row in world.rows] == [NO_OWNER]
