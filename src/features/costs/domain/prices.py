"""Provider prices with their effective dates. Amounts are whole nanodollars (billionths of a dollar)."""

import math
import re
from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from typing import TypeVar

import msgspec

from shared.llm import Usage

TOKENS_PRICED = 1_000_000  # token prices are per this number of tokens
_DATE = re.compile(r"[-@]\d{4}-?\d{2}-?\d{2}$")


class TokenPrice(msgspec.Struct, frozen=True, kw_only=True):
    """Nanodollars per million tokens. Some models cost more for long prompts: this price applies to prompts
    of more than ``tokens_in_above`` tokens, and then to all tokens of the call.
    """

    provider: str
    model: str
    effective_from: datetime
    input_nanodollars: int
    cached_input_nanodollars: int
    cache_write_nanodollars: int
    output_nanodollars: int
    tokens_in_above: int = 0


class UnitPrice(msgspec.Struct, frozen=True, kw_only=True):
    """Price of a unit other than tokens: a scraper's run, a compute hour, a request."""

    provider: str
    unit: str
    effective_from: datetime
    nanodollars: int


Price = TypeVar("Price", TokenPrice, UnitPrice)


class PriceBook:
    """Prices at the time of use. A model without a known price returns None, which is different from free."""

    def __init__(self, tokens: Iterable[TokenPrice], units: Iterable[UnitPrice]) -> None:
        self._tokens: dict[tuple[str, str], list[TokenPrice]] = {}
        for price in sorted(tokens, key=lambda one: (one.effective_from, one.tokens_in_above)):
            self._tokens.setdefault((price.provider, price.model), []).append(price)
        self._units: dict[tuple[str, str], list[UnitPrice]] = {}
        for price in sorted(units, key=lambda one: one.effective_from):
            self._units.setdefault((price.provider, price.unit), []).append(price)

    def of_tokens(self, provider: str, model: str, usage: Usage, at: datetime) -> int | None:
        """A dated model name falls back to the price of the undated name. Returns None if neither has a
        price.
        """
        price = self._token_price(provider, model, usage, at) or self._token_price(
            provider, _DATE.sub("", model), usage, at
        )
        return None if price is None else _cost(price, usage)

    def of_units(self, provider: str, unit: str, count: float, at: datetime) -> int | None:
        """Returns None without a price, and for a count that is negative or not finite."""
        prices = _effective(self._units.get((provider, unit), []), at)
        if not prices or not math.isfinite(count) or count < 0:
            return None
        return round(prices[-1].nanodollars * Fraction(count))

    def _token_price(self, provider: str, model: str, usage: Usage, at: datetime) -> TokenPrice | None:
        prices = _effective(self._tokens.get((provider, model), []), at)
        # Among prices with the same effective date, the one for the longest prompts comes last.
        reached = [price for price in prices if _reaches(usage, price)]
        return reached[-1] if reached else None


def _effective(prices: list[Price], at: datetime) -> list[Price]:
    return [price for price in prices if price.effective_from <= at]


def _reaches(usage: Usage, price: TokenPrice) -> bool:
    return not price.tokens_in_above or usage.tokens_in > price.tokens_in_above


def _cost(price: TokenPrice, usage: Usage) -> int:
    """Counts each token once: cached and cache-written tokens are part of the input, reasoning tokens part of
    the output. Rounds once, half to even.
    """
    # A provider may report more cached tokens than input tokens; the cost must not become negative.
    uncached = max(usage.tokens_in - usage.tokens_cached - usage.tokens_cache_written, 0)
    millionths = (
        uncached * price.input_nanodollars
        + usage.tokens_cached * price.cached_input_nanodollars
        + usage.tokens_cache_written * price.cache_write_nanodollars
        + usage.tokens_out * price.output_nanodollars
    )
    return round(Fraction(millionths, TOKENS_PRICED))
