"""Consistency of the model catalog and the price list."""

from datetime import UTC, datetime

import pytest

from features.costs.domain.prices import PriceBook
from infrastructure.ai.model_catalog import read_model_catalog
from infrastructure.database.costs.price_file import read_price_list
from shared.llm import Usage

TODAY = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.fixture(scope="module")
def book():
    prices = read_price_list()
    return PriceBook([line.price for line in prices.tokens], [line.price for line in prices.units])


@pytest.mark.parametrize("model", read_model_catalog().models, ids=lambda model: model.name)
def test_every_model_has_a_price(book, model):
    assert book.of_tokens(model.provider, model.name, Usage(tokens_in=1_000_000), TODAY)


@pytest.mark.parametrize("task", read_model_catalog().tasks)
def test_successor_costs_at_most_half_more(book, task):
    table = read_model_catalog()
    usage = Usage(tokens_in=10_000, tokens_out=2_000)
    later = datetime(2028, 1, 1, tzinfo=UTC)

    first, heir = (table.route(table.task(task), day.date())[0] for day in (TODAY, later))

    now, then = (book.of_tokens(model.provider, model.name, usage, TODAY) for model in (first, heir))
    assert then <= 1.5 * now
