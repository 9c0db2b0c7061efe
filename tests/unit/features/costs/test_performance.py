"""Time per step of a run."""

import pytest

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
