"""Quote of an analysis: price and conditions before it starts."""

from typing import Any

from rich.table import Table

from core.cli.output.renderer import cell, counted
from features.analysis.controllers.start_schemas import QuoteResponse


def quote_table(quote: QuoteResponse, request: dict[str, Any]) -> Table:
    title = f"Quote for a {request['type']} analysis of @{request['username']}. No run was started."
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_row("price", counted(quote.credits, "credit"))
    enough = "enough" if quote.is_affordable else "not enough"
    table.add_row("available", f"{counted(quote.credits_available, 'credit')} ({enough})")
    table.add_row("duration", f"about {quote.eta_s} s after the start")
    table.add_row("profile", _profile_text(quote))
    if quote.duplicate_run_id:
        table.add_row("in progress", f"{quote.duplicate_run_id} (not charged again)")
    running = f"{quote.plan.runs_at_work} of {quote.plan.runs_at_once} runs in progress"
    table.add_row("plan", cell(f"{quote.plan.name}: {running}"))
    rules = quote.refund_policy.rules
    free = [_outcome_text(rule.outcome) for rule in rules if rule.percent_charged == 0]
    table.add_row("free if", cell(", ".join(free)))
    for rule in rules:
        if rule.credits_charged_min:
            minimum = f"{counted(rule.credits_charged_min, 'credit')} if {_outcome_text(rule.outcome)}"
            table.add_row("minimum charge", cell(minimum))
    return table


def _profile_text(quote: QuoteResponse) -> str:
    if quote.checks is not None and quote.checks.outcome != "ok":
        return f"already checked: {_outcome_text(quote.checks.outcome)}, so nothing would be charged"
    return "fetched recently, which is faster" if quote.is_cached else "not fetched yet"


def _outcome_text(outcome: str) -> str:
    return outcome.replace("_", " ")
