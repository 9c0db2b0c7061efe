"""Quote of an analysis: price and conditions before it starts."""

from typing import Any

from rich.table import Table

from core.cli.client.schemas import Answer
from core.cli.output.run_text import cell, counted


class Checks(Answer, frozen=True, kw_only=True):
    outcome: str


class Plan(Answer, frozen=True, kw_only=True):
    name: str
    runs_at_once: int
    runs_at_work: int


class Rule(Answer, frozen=True, kw_only=True):
    outcome: str
    percent_charged: int
    credits_charged_min: int = 0


class RefundPolicy(Answer, frozen=True, kw_only=True):
    rules: tuple[Rule, ...] = ()


class Quote(Answer, frozen=True, kw_only=True):
    credits: int
    credits_available: int
    is_affordable: bool
    duplicate_run_id: str | None = None
    is_cached: bool = False
    checks: Checks | None = None
    eta_s: int
    plan: Plan
    refund_policy: RefundPolicy


def quote_table(quote: Quote, order: dict[str, Any]) -> Table:
    title = f"A {order['type']} analysis of @{order['username']}: nothing was started"
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_row("price", counted(quote.credits, "credit"))
    enough = "enough" if quote.is_affordable else "too few"
    table.add_row("you have", f"{counted(quote.credits_available, 'credit')}, which is {enough}")
    table.add_row("takes about", f"{quote.eta_s} s once it is its turn")
    table.add_row("profile", _profile(quote))
    if quote.duplicate_run_id:
        table.add_row("under way", cell(f"{quote.duplicate_run_id}; it would not be paid twice"))
    at_work = f"{quote.plan.runs_at_work} of {quote.plan.runs_at_once} runs at work"
    table.add_row("plan", cell(f"{quote.plan.name}: {at_work}"))
    free = [rule.outcome for rule in quote.refund_policy.rules if rule.percent_charged == 0]
    table.add_row("free when", cell(", ".join(free).replace("_", " ")))
    for rule in quote.refund_policy.rules:
        if rule.credits_charged_min:
            least = f"{counted(rule.credits_charged_min, 'credit')} when {rule.outcome.replace('_', ' ')}"
            table.add_row("at least", cell(least))
    return table


def _profile(quote: Quote) -> str:
    if quote.checks is not None and quote.checks.outcome != "ok":
        return f"known already: {quote.checks.outcome.replace('_', ' ')}, so nothing would be charged"
    return "fetched by you recently, which is faster" if quote.is_cached else "to be looked at"
