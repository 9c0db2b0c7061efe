"""Costs and margins of a run."""

import pytest

from features.costs.domain.breakdown import CallCosts, Sale, breakdown


def costs(calls=1, unpriced=0, nanodollars=0, duration_ms=1_000.0):
    return CallCosts(
        calls=calls, calls_unpriced=unpriced, cost_nanodollars=nanodollars, duration_ms=duration_ms
    )


def found(scrapes, model_calls, credits_charged=5):
    return breakdown(
        scrapes, model_calls, Sale(credits_charged=credits_charged, credit_nanodollars=970_000_000)
    )


def test_a_breakdown_has_apify_ai_total_and_margins():
    run = found(costs(1, 0, 3_000_000, 8_000.0), costs(2, 0, 4_000_000, 5_000.0))

    assert (run.apify.calls, run.ai.calls, run.total.calls) == (1, 2, 3)
    assert (run.total.cost_nanodollars, run.total.duration_ms) == (7_000_000, 13_000.0)
    assert run.margins.revenue_nanodollars == 4_850_000_000
    assert run.margins.gross_nanodollars == 4_843_000_000
    assert run.margins.percent == pytest.approx(99.8557, abs=0.0001)
    assert not run.margins.is_at_most


def test_unpriced_call_makes_the_margin_an_upper_bound():
    run = found(costs(1, 1), costs(1, 1), 1)

    assert (run.total.calls, run.total.calls_unpriced, run.total.cost_nanodollars) == (2, 2, 0)
    assert (run.margins.percent, run.margins.is_at_most) == (100.0, True)


def test_without_revenue_there_is_a_loss_and_no_percentage():
    margins = found(costs(0), costs(1, 0, 7), 0).margins

    assert (margins.revenue_nanodollars, margins.gross_nanodollars, margins.percent) == (0, -7, None)
