"""Cost of a call: the price at its time, each token counted once, exact to the nanodollar."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.costs.domain.prices import PriceBook, TokenPrice, UnitPrice
from shared.llm import Usage

DAY = datetime(2026, 1, 1, tzinfo=UTC)
TOKENS = st.integers(0, 10_000_000)


def token_price(model="m", *, at=DAY, cents=(100, 10, 125, 400), above=0):
    """Prices in cents per million tokens: input, cached input, cache write, output."""
    paid, cached, written, out = (amount * 10_000_000 for amount in cents)
    return TokenPrice(
        provider="p",
        model=model,
        effective_from=at,
        input_nanodollars=paid,
        cached_input_nanodollars=cached,
        cache_write_nanodollars=written,
        output_nanodollars=out,
        tokens_in_above=above,
    )


def unit_price(nanodollars, *, at=DAY):
    return UnitPrice(provider="p", unit="run", effective_from=at, nanodollars=nanodollars)


def of_tokens(usage, *prices, model="m", at=DAY, provider="p"):
    return PriceBook(prices, ()).of_tokens(provider, model, usage, at)


def test_input_and_output_have_their_own_price():
    assert of_tokens(Usage(tokens_in=1_000_000), token_price()) == 1_000_000_000
    assert of_tokens(Usage(tokens_out=1_000_000), token_price()) == 4_000_000_000


def test_cached_and_written_tokens_are_parts_of_the_input_and_counted_once():
    usage = Usage(tokens_in=1_000, tokens_cached=600, tokens_cache_written=300, tokens_out=0)

    assert of_tokens(usage, token_price()) == 100 * 1_000 + 600 * 100 + 300 * 1_250


def test_reasoning_tokens_are_part_of_the_output_and_counted_once():
    assert of_tokens(Usage(tokens_out=1_000, tokens_reasoning=900), token_price()) == 1_000 * 4_000


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_cost_is_the_sum_of_the_token_kinds(paid, cached, written, out):
    usage = Usage(
        tokens_in=paid + cached + written, tokens_cached=cached, tokens_cache_written=written, tokens_out=out
    )

    assert of_tokens(usage, token_price()) == paid * 1_000 + cached * 100 + written * 1_250 + out * 4_000


def test_more_cached_than_input_tokens_do_not_reduce_the_cost():
    assert of_tokens(Usage(tokens_in=10, tokens_cached=20), token_price()) == 20 * 100


@pytest.mark.parametrize(
    ("tokens", "nanodollars"), [(1, 0), (2, 1), (3, 2), (5, 2), (7, 4), (500_000, 250_000)]
)
def test_a_call_is_rounded_once_half_to_even(tokens, nanodollars):
    half = TokenPrice(
        provider="p",
        model="m",
        effective_from=DAY,
        input_nanodollars=500_000,
        cached_input_nanodollars=0,
        cache_write_nanodollars=0,
        output_nanodollars=500_000,
    )

    assert of_tokens(Usage(tokens_in=tokens), half) == nanodollars
    assert of_tokens(Usage(tokens_in=tokens - 1, tokens_out=1), half) == nanodollars


@pytest.mark.parametrize(
    ("at", "nanodollars"),
    [
        (DAY - timedelta(microseconds=1), None),
        (DAY, 1_000),
        (DAY + timedelta(days=10) - timedelta(microseconds=1), 1_000),
        (DAY + timedelta(days=10), 2_000),
        (DAY + timedelta(days=1_000), 2_000),
    ],
)
def test_price_is_the_one_in_effect_at_the_call(at, nanodollars):
    newer = token_price(at=DAY + timedelta(days=10), cents=(200, 0, 0, 0))

    assert of_tokens(Usage(tokens_in=1), newer, token_price(), at=at) == nanodollars


@pytest.mark.parametrize("name", ["m-2025-08-07", "m-20250807", "m@20250807"])
def test_dated_model_name_uses_the_undated_price(name):
    assert of_tokens(Usage(tokens_in=1), token_price(), model=name) == 1_000


def test_dated_model_name_prefers_its_own_price():
    own = token_price("m-2025-08-07", cents=(300, 0, 0, 0))

    assert of_tokens(Usage(tokens_in=1), token_price(), own, model="m-2025-08-07") == 3_000


@pytest.mark.parametrize(
    ("provider", "model"), [("p", "other"), ("p", "m-mini"), ("q", "m"), ("p", ""), ("p", "m-2025")]
)
def test_unknown_model_has_no_price_instead_of_zero(provider, model):
    assert of_tokens(Usage(tokens_in=1), token_price(), provider=provider, model=model) is None


@pytest.mark.parametrize(("tokens_in", "nanodollars"), [(1_000, 1_000_000), (1_001, 5 * 1_001_000)])
def test_a_long_prompt_may_cost_more_for_every_token(tokens_in, nanodollars):
    long = token_price(cents=(500, 50, 625, 2_000), above=1_000)

    assert of_tokens(Usage(tokens_in=tokens_in), long, token_price()) == nanodollars


def test_newer_price_replaces_an_older_long_prompt_price():
    long = token_price(cents=(500, 50, 625, 2_000), above=1_000)
    newer = token_price(at=DAY + timedelta(days=1))

    assert of_tokens(Usage(tokens_in=2_000), long, newer, at=DAY + timedelta(days=1)) == 2_000_000


@pytest.mark.parametrize(
    ("count", "nanodollars"), [(0, 0), (1, 3_000_000), (2.5, 7_500_000), (0.25, 750_000), (1e-7, 0)]
)
def test_units_cost_by_their_count(count, nanodollars):
    assert PriceBook((), [unit_price(3_000_000)]).of_units("p", "run", count, DAY) == nanodollars


@pytest.mark.parametrize("count", [-1, math.nan, math.inf])
def test_invalid_count_has_no_price(count):
    assert PriceBook((), [unit_price(1)]).of_units("p", "run", count, DAY) is None


@pytest.mark.parametrize(("unit", "at"), [("hour", DAY), ("run", DAY - timedelta(seconds=1))])
def test_an_unknown_unit_has_no_price(unit, at):
    assert PriceBook((), [unit_price(1)]).of_units("p", unit, 1, at) is None


def test_newest_effective_unit_price_applies():
    book = PriceBook((), [unit_price(2, at=DAY + timedelta(days=1)), unit_price(1)])

    assert [book.of_units("p", "run", 1, DAY + timedelta(days=day)) for day in (0, 1, 2)] == [1, 2, 2]
