"""Conversion of nanodollars to dollars, exact to the billionth below one million dollars."""

DOLLAR_NANODOLLARS = 1_000_000_000


def dollars(nanodollars: int) -> float:
    return nanodollars / DOLLAR_NANODOLLARS
