"""Progress bars in the terminal."""

import re
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from core.cli.output.run_text import is_ended, step_text
from core.cli.output.run_watcher import Show
from features.runs.domain.view import RunResponse

BATCH = re.compile(r"batch ([0-9]{1,6}) of ([0-9]{1,6})")


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]:>9}"),
        TimeElapsedColumn(),
        console=console,
    )


@contextmanager
def run_bar(console: Console) -> Generator[Show]:
    with _progress(console) as progress:
        task = progress.add_task("Starting", total=100, detail="")

        def show(run: RunResponse) -> None:
            remaining = f"~{run.eta_s:.0f} s" if run.eta_s and not is_ended(run) else f"{run.progress} %"
            progress.update(
                task, completed=run.progress, description=_padded(step_text(run)), detail=remaining
            )

        yield show


@contextmanager
def bulk_bars(console: Console, items_count: int, on_pause: str) -> Generator[Show]:
    """One bar for the profiles and one for the batches. ``on_pause`` is printed when the run pauses."""
    with _progress(console) as progress:
        items = progress.add_task(_padded("Profiles"), total=items_count, detail=f"0/{items_count}")
        batches = progress.add_task(_padded("Batches"), total=None, detail="")
        was_paused = False

        def show(run: RunResponse) -> None:
            nonlocal was_paused
            ended = items_count if run.status == "completed" else items_count * run.progress // 100
            progress.update(items, completed=ended, detail=f"{ended}/{items_count}")
            progress.update(batches, description=_padded(step_text(run)))
            if batch := BATCH.fullmatch(run.current_step or ""):
                number, count = int(batch[1]), int(batch[2])
                progress.update(batches, completed=number, total=count, detail=f"{number}/{count}")
            if run.status == "paused" and not was_paused:
                progress.console.print(on_pause, markup=False, soft_wrap=True)
            was_paused = run.status == "paused"

        yield show


def _padded(text: str) -> str:
    return f"{escape(text):<30}"
