"""Estimates of waiting and running times from the latest completed runs.

Estimates are whole seconds: a value that differs at every read would change the ETag each time.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from statistics import median

import msgspec

from features.runs.domain.kinds import EXPECTED_S
from features.runs.domain.run import ENDED, Run, StepStarted


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Times of a completed run."""

    started_at: datetime
    ended_at: datetime
    steps: tuple[StepStarted, ...]


class StepTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Median durations of a kind's steps, ordered by their usual start."""

    total_s: float
    steps_s: tuple[tuple[str, float], ...] = ()


class QueueFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Runs ahead of a queued run: those of its account that are admitted first, and those in the engine's
    queue.
    """

    is_admitted: bool
    account_ahead: int
    engine_ahead: int
    active: int  # runs of this queue, over all accounts
    runs_at_once: int  # limit of this account


class QueuePosition(msgspec.Struct, frozen=True, kw_only=True):
    position: int
    starts_in_s: int


def step_times(samples: Sequence[Sample], expected_s: float = EXPECTED_S) -> StepTimes:
    """``expected_s`` is the total until a run has completed."""
    if not samples:
        return StepTimes(total_s=expected_s)
    durations_s: defaultdict[str, list[float]] = defaultdict(list)
    offsets_s: defaultdict[str, list[float]] = defaultdict(list)
    for sample in samples:
        ends = [*(step.at for step in sample.steps[1:]), sample.ended_at]
        for step, end in zip(sample.steps, ends, strict=False):
            durations_s[step.step].append((end - step.at).total_seconds())
            offsets_s[step.step].append((step.at - sample.started_at).total_seconds())
    order = sorted(offsets_s, key=lambda step: median(offsets_s[step]))
    return StepTimes(
        total_s=median((sample.ended_at - sample.started_at).total_seconds() for sample in samples),
        steps_s=tuple((step, median(durations_s[step])) for step in order),
    )


def seconds_left(run: Run, times: StepTimes) -> int | None:
    """Estimates the rest of a running run from the start of its current step. For an unknown step, such as a
    batch's, uses the progress instead. Returns None if the run is paused or ended.
    """
    if run.status in ENDED or run.status == "paused":
        return None
    names = [name for name, _ in times.steps_s]
    if run.current_step in names:
        return math.ceil(sum(seconds for _, seconds in times.steps_s[names.index(run.current_step) :]))
    return math.ceil(times.total_s * (100 - run.progress) / 100)


def queue_position(figures: QueueFigures, times: StepTimes) -> QueuePosition:
    """Assumes that each lane finishes one run per usual duration of a run."""
    waits = figures.engine_ahead / max(figures.active, 1)
    if not figures.is_admitted:
        # A run of the account must end before this one is admitted.
        waits += (figures.account_ahead + 1) / figures.runs_at_once
    return QueuePosition(
        position=figures.account_ahead + figures.engine_ahead, starts_in_s=math.ceil(waits * times.total_s)
    )
