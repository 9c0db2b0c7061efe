"""Time per step of a run, and its cost and duration alerts."""

import pytest

from features.costs.domain.alerts import alerts
from features.costs.domain.performance import PerformanceTracker


class Watch:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def watch():
    return Watch()


@pytest.fixture
def performance(watch):
    return PerformanceTracker(watch)


def test_sequential_steps_share_the_total_time(performance, watch):
    for name, seconds in (("scrape", 8), ("score", 2)):
        performance.start_step(name)
        watch.now_s += seconds
        performance.end_step(name)
    watch.now_s += 100

    found = performance.get_breakdown()

    assert [(step.name, step.duration_ms, step.share) for step in found.steps] == [
        ("scrape", 8_000.0, 0.8),
        ("score", 2_000.0, 0.2),
    ]
    assert (found.total_ms, found.bottleneck) == (10_000.0, "scrape")


def test_nested_steps_are_timed_separately(performance, watch):
    performance.start_step("all")
    watch.now_s += 1
    performance.start_step("part")
    watch.now_s += 2
    performance.end_step("part")
    watch.now_s += 1
    performance.end_step("all")

    found = performance.get_breakdown()

    assert {step.name: step.share for step in found.steps} == {"all": 1.0, "part": 0.5}
    assert (found.total_ms, found.bottleneck) == (4_000.0, "all")


def test_repeated_and_parallel_steps_of_one_name_are_added_up(performance, watch):
    performance.start_step("ask")
    performance.start_step("ask")
    watch.now_s += 1
    performance.end_step("ask")
    watch.now_s += 1
    performance.end_step("ask")
    performance.start_step("ask")
    watch.now_s += 1
    performance.end_step("ask")

    (step,) = performance.get_breakdown().steps

    assert (step.times, step.duration_ms, step.is_open) == (3, 4_000.0, False)
    assert performance.get_breakdown().total_ms == 3_000.0


def test_a_step_that_never_ends_counts_until_now(performance, watch):
    performance.start_step("done")
    watch.now_s += 1
    performance.end_step("done")
    performance.start_step("stuck")
    watch.now_s += 3

    found = performance.get_breakdown()

    assert [(step.name, step.is_open, step.duration_ms) for step in found.steps] == [
        ("done", False, 1_000.0),
        ("stuck", True, 3_000.0),
    ]
    assert (found.bottleneck, found.total_ms) == ("stuck", 4_000.0)


def test_end_of_a_step_that_has_not_started_is_ignored(performance, watch):
    performance.end_step("never")
    assert performance.get_breakdown().steps == []

    performance.start_step("once")
    performance.end_step("once")
    watch.now_s += 1
    performance.end_step("once")

    found = performance.get_breakdown()
    assert [(step.name, step.duration_ms, step.share) for step in found.steps] == [("once", 0.0, 0.0)]
    assert found.total_ms == 0.0


def alarms(analysis_type="light", *, dollars=0.0, duration_s=0.0, calls_unpriced=0):
    found = alerts(
        analysis_type,
        cost_nanodollars=round(dollars * 1e9),
        calls_unpriced=calls_unpriced,
        duration_ms=duration_s * 1_000,
    )
    return [(alert.kind, alert.level) for alert in found]


@pytest.mark.parametrize(
    ("dollars", "expected"),
    [
        (0.049_999_999, []),
        (0.05, [("cost", "warning")]),
        (0.099_999_999, [("cost", "warning")]),
        (0.10, [("cost", "critical")]),
    ],
)
def test_cost_at_a_limit_raises_an_alert(dollars, expected):
    assert alarms(dollars=dollars) == expected


@pytest.mark.parametrize(("analysis_type", "limit_s"), [("light", 60), ("deep", 90), ("xray", 120)])
def test_duration_above_the_limit_raises_an_alert(analysis_type, limit_s):
    assert alarms(analysis_type, duration_s=limit_s) == []
    assert alarms(analysis_type, duration_s=limit_s + 0.001) == [("duration", "warning")]
    assert alarms("other", duration_s=10_000) == []


def test_unpriced_call_raises_a_separate_alert():
    assert alarms(dollars=0.2, duration_s=61, calls_unpriced=1) == [
        ("cost", "critical"),
        ("unpriced", "warning"),
        ("duration", "warning"),
    ]
