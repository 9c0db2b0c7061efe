"""What providers charge, and since when. Amounts are whole nanodollars: billionths of a dollar."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from shared.questions import Usage


class TokenPrice(msgspec.Struct, frozen=True, kw_only=True):
    """Nanodollars per million tokens."""

    provider: str
    model: str
    effective_from: datetime
    input_nanodollars: int
    cached_input_nanodollars: int
    cache_write_nanodollars: int
    output_nanodollars: int


class UnitPrice(msgspec.Struct, frozen=True, kw_only=True):
    """Of what is not sold by tokens: a scraper's run, a compute hour, a request."""

    provider: str
    unit: str
    effective_from: datetime
    nanodollars: int


class PriceBook:
    """Prices by the moment of use. An unknown model has no price, which is not the same as free."""

    def __init__(self, tokens: Iterable[TokenPrice], units: Iterable[UnitPrice]) -> None: ...

    def of_tokens(self, provider: str, model: str, usage: Usage, at: datetime) -> int | None:
        raise NotImplementedError

    def of_units(self, provider: str, unit: str, count: float, at: datetime) -> int | None:
        raise NotImplementedError
