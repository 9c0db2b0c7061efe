"""Text about runs: current step, outcome and charge."""

from datetime import UTC, datetime

from rich.text import Text

from core.cli.client.schemas import Run
from shared.text import plain

STEPS = {
    "scrape": "Looking at the profile",
    "light": "Judging the profile",
    "core": "Judging the profile",
    "outreach": "Writing messages",
    "personality": "Describing the personality",
    "psychographic": "Describing values and motives",
    "commercial": "Weighing what could be sold",
    "save": "Saving the result",
    "waiting_for_credits": "Waiting for credits",
}
KINDS = {
    "light_analysis": "light",
    "deep_analysis": "deep",
    "xray_analysis": "xray",
    "bulk_analysis": "bulk",
    "anonymous_analysis": "anonymous",
}
COLOURS = {"completed": "green", "failed": "red", "cancelled": "yellow", "paused": "magenta"}
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def cell(text: str, style: str = "") -> Text:
    """Removes colours, markup and control sequences from text that we did not write."""
    return Text(plain(text), style)


def kind_of(run: Run) -> str:
    return KINDS.get(run.kind) or plain(run.kind)


def whom_of(run: Run) -> str:
    """The subject of a run: a username, or the number of profiles in a bulk run."""
    if run.is_bulk:
        return f"{run.subject.get('count', '?')} profiles ({plain(str(run.subject.get('type', '?')))})"
    return f"@{plain(str(run.subject.get('username', '?')))}"


def step_of(run: Run) -> str:
    if run.is_ended:
        return run.status.capitalize()
    if run.should_cancel:
        return "Cancelling"
    if run.status == "queued":
        return f"Waiting for its turn{_place_of(run)}"
    step = run.current_step or "starting"
    return STEPS.get(step) or plain(step).replace("_", " ").capitalize()


def _place_of(run: Run) -> str:
    """``position`` is the number of runs ahead."""
    if run.queue is None or run.queue.position is None:
        return ""
    return f" ({run.queue.position:,} ahead)" if run.queue.position else " (next)"


def settlement_of(run: Run) -> str:
    """Credits charged and returned after a run has ended, with the reason."""
    returned = run.credits_held - run.credits_charged
    charged = (
        f"{counted(run.credits_charged, 'credit')} charged" if run.credits_charged else "Nothing charged"
    )
    back = f", {counted(returned, 'credit')} returned" if returned > 0 else ""
    why = f" {plain(run.refund.explanation)}" if run.refund is not None else ""
    return f"{charged}{back}.{why}"


def ending_of(run: Run) -> str:
    why = f" ({plain(run.outcome)})" if run.outcome else ""
    reason = f" {plain(run.error)}" if run.error else ""
    return f"{run.status}{why}.{reason} {settlement_of(run)}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def age_of(instant: datetime) -> str:
    seconds = max(0, int((datetime.now(UTC) - instant).total_seconds()))
    return next((f"{seconds // size} {unit}" for size, unit in UNITS if seconds >= size), "now")
