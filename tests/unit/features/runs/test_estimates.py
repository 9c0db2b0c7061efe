"""Estimated times and the response schema of a run."""

import uuid
from datetime import timedelta

import pytest

from features.runs.domain.estimates import (
    QueueFigures,
    Sample,
    StepTimes,
    queue_position,
    seconds_left,
    step_times,
)
from features.runs.domain.kinds import ResultLink
from features.runs.domain.run import Run, StepStarted
from features.runs.domain.view import Children, RunSnapshot, run_response
from tests.support import NOON

TIMES = StepTimes(total_s=20.0, steps_s=(("scrape", 8.0), ("core", 10.5), ("save", 0.2)))


def after(seconds):
    return NOON + timedelta(seconds=seconds)


def sample(total_s, **begun_s):
    steps = tuple(StepStarted(step, after(seconds)) for step, seconds in begun_s.items())
    return Sample(started_at=NOON, ended_at=after(total_s), steps=steps)


def a_run(**changes):
    values = {
        **dict.fromkeys(Run.__struct_fields__),
        "account_id": uuid.UUID(int=1),
        "id": uuid.UUID(int=2),
        "kind": "deep_analysis",
        "status": "processing",
        "progress": 0,
        "should_cancel": False,
        "subject": {},
        "credits_held": 5,
        "credits_charged": 0,
        "refund_policy": 1,
        "steps": (),
        "created_at": NOON,
        "version": 3,
    }
    return Run(**values | changes)


def shown(run, *, children=None, at=NOON, figures=None, links=None):
    snapshot = RunSnapshot(run=run, children=children or Children())
    return run_response(snapshot, links=links or {}, times=TIMES, figures=figures, at=at)


def test_step_lasts_until_the_next_one_or_the_end_of_the_run():
    times = step_times([sample(10, scrape=1, core=4, save=9)])

    assert times == StepTimes(total_s=10.0, steps_s=(("scrape", 3.0), ("core", 5.0), ("save", 1.0)))


def test_usual_duration_is_the_median():
    samples = [sample(total_s, scrape=0, core=begun_s) for total_s, begun_s in ((10, 4), (100, 50), (12, 5))]

    assert step_times(samples) == StepTimes(total_s=12.0, steps_s=(("scrape", 5.0), ("core", 7.0)))


def test_steps_are_ordered_by_their_median_start():
    samples = [sample(9, outreach=2, core=3), sample(9, core=2, outreach=5), sample(9, core=1, outreach=6)]

    assert [step for step, _ in step_times(samples).steps_s] == ["core", "outreach"]


def test_without_samples_the_expected_duration_is_used():
    assert step_times([], 12.0) == StepTimes(total_s=12.0)


@pytest.mark.parametrize(
    ("changes", "left_s"),
    [
        ({"current_step": "scrape"}, 19),
        ({"current_step": "core", "progress": 99}, 11),
        ({"current_step": "save"}, 1),
        ({"current_step": "batch 3 of 10", "progress": 30}, 14),
        ({"current_step": None}, 20),
        ({"status": "paused", "current_step": "core"}, None),
        ({"status": "completed", "current_step": "save"}, None),
    ],
    ids=str,
)
def test_remaining_time_is_the_current_and_the_following_steps(changes, left_s):
    assert seconds_left(a_run(**changes), TIMES) == left_s


def figures(**changes):
    values = {
        "is_admitted": True,
        "account_ahead": 0,
        "engine_ahead": 0,
        "active": 0,
        "runs_at_once": 1,
    }
    return QueueFigures(**values | changes)


@pytest.mark.parametrize(
    ("changes", "position", "starts_in_s"),
    [
        ({}, 0, 0),
        ({"engine_ahead": 3}, 3, 60),
        ({"engine_ahead": 3, "active": 6}, 3, 10),
        ({"is_admitted": False}, 0, 20),
        ({"is_admitted": False, "account_ahead": 3, "runs_at_once": 2}, 3, 40),
        ({"is_admitted": False, "account_ahead": 1, "engine_ahead": 2, "active": 2}, 3, 60),
    ],
    ids=str,
)
def test_queue_place_counts_the_runs_ahead_and_their_duration(changes, position, starts_in_s):
    place = queue_position(figures(**changes), TIMES)

    assert (place.position, place.starts_in_s) == (position, starts_in_s)


def test_queued_run_has_an_eta_when_its_place_is_known():
    run = a_run(status="queued")

    assert shown(run, figures=figures(engine_ahead=1)).eta_s == 40
    assert (shown(run).queue, shown(run).eta_s) == (None, None)


def test_credits_of_children_are_included():
    children = Children(credits_held=10, credits_charged=5)

    running = shown(a_run(credits_held=1), children=children)

    assert (running.credits_held, running.credits_charged) == (11, 5)


@pytest.mark.parametrize(("minutes", "is_live"), [(0, True), (59, True), (60, False)])
def test_a_run_is_live_until_an_hour_after_its_end(minutes, is_live):
    run = a_run(status="completed", outcome="completed", ended_at=NOON)

    assert shown(run, at=NOON + timedelta(minutes=minutes)).is_live is is_live
    assert shown(a_run(), at=NOON + timedelta(days=9)).is_live


@pytest.mark.parametrize(
    ("outcome", "percent"), [("completed", 100), ("cancelled_analyzing", 50), ("cancelled", 0)]
)
def test_refund_follows_the_policy_version_of_the_run(outcome, percent):
    run = a_run(status="cancelled", outcome=outcome, ended_at=NOON)

    assert (shown(run).refund.percent_charged, shown(run).refund.policy_version) == (percent, 1)
    assert shown(run).refund.explanation
    assert shown(a_run(status="failed", outcome=outcome, ended_at=NOON, refund_policy=99)).refund is None
    assert shown(a_run()).refund is None


def test_result_url_is_set_when_completed_or_partial():
    links = {
        "deep_analysis": ResultLink(template="/a/{run_id}"),
        "bulk": ResultLink(template="/b/{run_id}", is_early=True),
    }
    done = a_run(status="completed", outcome="completed", ended_at=NOON)

    assert shown(done, links=links).result_url == f"/a/{done.id}"
    assert shown(a_run(), links=links).result_url is None
    assert shown(a_run(kind="bulk"), links=links).result_url == f"/b/{done.id}"
