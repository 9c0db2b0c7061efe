"""Table of provider costs for the terminal."""

from collections.abc import Iterable

from rich.table import Table

from features.costs.domain.reports import CostLine

DOLLAR_NANODOLLARS = 1_000_000_000
COUNTED = ("calls", "calls_cached", "calls_failed", "calls_unpriced", "tokens_in", "tokens_out")


def cost_table(lines: Iterable[CostLine], days: int) -> Table:
    """One row for each provider, model and task, summed over the days; the most expensive first."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for line in lines:
        provider = f"{line.provider} (simulated)" if line.is_simulated else line.provider
        _add(sums.setdefault((provider, line.model, line.task), [0] * 7), line)
    total = [sum(column) for column in zip(*sums.values(), strict=True)]
    table = Table(title=f"Last {days} days", show_footer=True)
    for title, footer in zip(("provider", "model", "task"), ("all", "", ""), strict=True):
        table.add_column(title, footer)
    titles = ("calls", "cached", "failed", "unpriced", "tokens in", "tokens out", "dollars")
    for title, footer in zip(titles, _told(total), strict=True):
        table.add_column(title, footer, justify="right")
    for names, numbers in sorted(sums.items(), key=lambda item: (-item[1][-1], item[0])):
        table.add_row(*names, *_told(numbers))
    return table


def _add(numbers: list[int], line: CostLine) -> None:
    for place, name in enumerate((*COUNTED, "cost_nanodollars")):
        numbers[place] += getattr(line, name)


def _told(numbers: list[int]) -> list[str]:
    *counts, nanodollars = numbers
    return [*(f"{count:,}" for count in counts), f"{nanodollars / DOLLAR_NANODOLLARS:,.6f}"]
