"""Costs of a run while it executes."""

import pytest

from features.costs.domain.breakdown import CostTracker, Sale
from features.costs.domain.prices import PriceBook
from infrastructure.database.costs.price_file import read_price_list
from tests.support import NOON
from tests.unit.features.costs.calls import model_call, scrape

CREDIT_NANODOLLARS = 970_000_000
LINES = read_price_list()
BOOK = PriceBook([line.price for line in LINES.tokens], [line.price for line in LINES.units])


def tracker(credits_charged=5):
    sale = Sale(credits_charged=credits_charged, credit_nanodollars=CREDIT_NANODOLLARS)
    return CostTracker(BOOK, lambda: NOON, sale)


def test_a_breakdown_has_apify_ai_total_and_margins():
    costs = tracker()
    costs.track_apify_call(50, 8_000.0)
    costs.track_ai_call("gpt-5-mini", 2_000, 1_000, 4_000.0)
    costs.track_ai_call("claude-haiku-4-5", 1_000, 100, 1_000.0)

    found = costs.get_breakdown()

    assert (found.apify.calls, found.apify.cost_nanodollars) == (1, 3_000_000)
    assert (found.ai.calls, found.ai.cost_nanodollars) == (2, 500_000 + 2_000_000 + 1_000_000 + 500_000)
    assert (found.total.cost_nanodollars, found.total.duration_ms) == (7_000_000, 13_000.0)
    assert found.margins.revenue_nanodollars == 4_850_000_000
    assert found.margins.gross_nanodollars == 4_843_000_000
    assert found.margins.percent == pytest.approx(99.8557, abs=0.0001)
    assert not found.margins.is_at_most


def test_cached_tokens_cost_less():
    costs = tracker()
    costs.track_ai_call("gpt-5-mini", 2_000, 0, 1.0, tokens_cached=1_000)
    costs.track_ai_call("claude-haiku-4-5", 1_000, 0, 1.0, tokens_cache_written=1_000)

    assert costs.get_breakdown().ai.cost_nanodollars == 250_000 + 25_000 + 1_250_000


def test_calls_whose_cost_is_known_are_not_priced_again():
    costs = tracker()
    costs.add(model_call(7))
    costs.add(scrape(5))

    found = costs.get_breakdown()

    assert (found.ai.cost_nanodollars, found.apify.cost_nanodollars) == (7, 5)
    assert (found.ai.duration_ms, found.apify.duration_ms) == (1_500.0, 8_000.0)


def test_unpriced_call_is_counted_and_makes_the_margin_an_upper_bound():
    costs = tracker(1)
    costs.track_ai_call("no-such-model", 2_000, 1_000, 1.0)
    costs.add(scrape(None))

    found = costs.get_breakdown()

    assert (found.total.calls, found.total.calls_unpriced, found.total.cost_nanodollars) == (2, 2, 0)
    assert (found.margins.percent, found.margins.is_at_most) == (100.0, True)


def test_without_revenue_there_is_a_loss_and_no_percentage():
    costs = tracker(0)
    costs.add(model_call(7))

    margins = costs.get_breakdown().margins

    assert (margins.revenue_nanodollars, margins.gross_nanodollars, margins.percent) == (0, -7, None)


def test_run_without_calls_costs_nothing():
    found = tracker().get_breakdown()

    assert (found.total.calls, found.total.cost_nanodollars, found.margins.percent) == (0, 0, 100.0)
