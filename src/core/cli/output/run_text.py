"""Text and tables about runs: current step, outcome and charge."""

from collections.abc import Sequence

from rich.table import Table

from core.cli.output.renderer import COLOURS, age_of, cell, counted
from features.runs.domain.run import ENDED
from features.runs.domain.view import RunResponse
from shared.text import plain

BULK = "bulk_analysis"
STEPS = {
    "scrape": "Fetching the profile",
    "light": "Scoring the profile",
    "core": "Scoring the profile",
    "outreach": "Writing messages",
    "personality": "Describing the personality",
    "psychographic": "Describing values and motives",
    "commercial": "Estimating the commercial fit",
    "save": "Saving the result",
    "waiting_for_credits": "Waiting for credits",
}


def is_ended(run: RunResponse) -> bool:
    return run.status in ENDED


def runs_table(runs: Sequence[RunResponse]) -> Table:
    table = Table()
    table.add_column("id", no_wrap=True, min_width=36)  # full length, so that it can be copied
    for name in ("kind", "subject", "status"):
        table.add_column(name)
    table.add_column("progress", justify="right")
    table.add_column("credits", justify="right")
    table.add_column("outcome")
    table.add_column("age", justify="right")
    for run in runs:
        table.add_row(
            str(run.run_id),
            cell(run.kind.removesuffix("_analysis")),
            cell(subject_of(run)),
            cell(run.status, COLOURS.get(run.status, "")),
            f"{run.progress} %",
            str(run.credits_charged if is_ended(run) else run.credits_held),
            cell(run.outcome or ""),
            age_of(run.created_at),
        )
    return table


def subject_of(run: RunResponse) -> str:
    """A username, or the number of profiles in a bulk run."""
    if run.kind == BULK:
        return f"{run.subject.get('count', '?')} profiles ({plain(str(run.subject.get('type', '?')))})"
    return f"@{plain(str(run.subject.get('username', '?')))}"


def step_text(run: RunResponse) -> str:
    if is_ended(run):
        return run.status.capitalize()
    if run.should_cancel:
        return "Cancelling"
    if run.status == "queued":
        return f"Queued{_queue_position(run)}"
    step = run.current_step or "starting"
    return STEPS.get(step) or plain(step).replace("_", " ").capitalize()


def _queue_position(run: RunResponse) -> str:
    """``position`` is the number of runs ahead."""
    if run.queue is None:
        return ""
    return f" ({run.queue.position:,} ahead)" if run.queue.position else " (next)"


def charge_text(run: RunResponse) -> str:
    """Credits charged and returned after a run has ended, with the reason."""
    returned = run.credits_held - run.credits_charged
    charged = (
        f"{counted(run.credits_charged, 'credit')} charged" if run.credits_charged else "Nothing charged"
    )
    back = f", {counted(returned, 'credit')} returned" if returned > 0 else ""
    reason = f" {plain(run.refund.explanation)}" if run.refund is not None else ""
    return f"{charged}{back}.{reason}"


def outcome_text(run: RunResponse) -> str:
    outcome = f" ({plain(run.outcome)})" if run.outcome else ""
    reason = f" {plain(run.error)}" if run.error else ""
    return f"{run.status}{outcome}.{reason} {charge_text(run)}"
