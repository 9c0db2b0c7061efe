"""Amounts as they are shown: dollars, exact to the billionth as long as they stay below a million."""

DOLLAR_NANODOLLARS = 1_000_000_000


def dollars(nanodollars: int) -> float:
    return nanodollars / DOLLAR_NANODOLLARS
