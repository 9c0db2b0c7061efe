import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from infrastructure.resilience.circuit_breaker import BreakerRules, CircuitBreaker


class Clock:
    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breaker(clock):
    return CircuitBreaker(clock)


def fail(breaker, times=1):
    for _ in range(times):
        breaker.leave(breaker.enter(), "failure")


def test_breaker_opens_after_five_consecutive_failures(breaker):
    fail(breaker, 4)
    assert breaker.state == "closed"

    assert breaker.leave(breaker.enter(), "failure")

    assert (breaker.state, breaker.enter(), breaker.blocked_for_s) == ("open", None, 10)


def test_success_resets_the_failure_count(breaker):
    fail(breaker, 4)
    breaker.leave(breaker.enter(), "success")
    fail(breaker, 4)

    assert breaker.state == "closed"


def test_breaker_opens_when_half_of_the_last_twenty_calls_failed(breaker, clock):
    for _ in range(10):
        assert breaker.state == "closed"
        clock.now_s += 1
        breaker.leave(breaker.enter(), "success")
        fail(breaker)

    assert breaker.state == "open"


def test_infrequent_failures_do_not_open_the_breaker(breaker, clock):
    for _ in range(30):
        clock.now_s += 4
        breaker.leave(breaker.enter(), "success")
        fail(breaker)

    assert breaker.state == "closed"


def test_half_open_breaker_permits_one_probe_at_a_time(breaker, clock):
    fail(breaker, 5)
    clock.now_s += 10

    assert breaker.state == "half_open"
    assert breaker.enter() is not None
    assert (breaker.enter(), breaker.blocked_for_s) == (None, math.inf)


def test_successful_probe_closes_the_breaker(breaker, clock):
    fail(breaker, 5)
    clock.now_s += 10

    breaker.leave(breaker.enter(), "success")
    fail(breaker, 4)

    assert breaker.state == "closed"


def test_failed_probes_double_the_open_time_up_to_a_limit(breaker, clock):
    fail(breaker, 5)
    times_s = []
    for _ in range(6):
        times_s.append(breaker.blocked_for_s)
        clock.now_s += breaker.blocked_for_s
        fail(breaker)

    assert times_s == [10, 20, 40, 80, 120, 120]


def test_cancelled_probe_permits_the_next(breaker, clock):
    fail(breaker, 5)
    clock.now_s += 10

    breaker.leave(breaker.enter(), "unknown")

    assert breaker.enter() is not None


def test_results_of_earlier_permits_are_ignored(breaker, clock):
    early = [breaker.enter() for _ in range(3)]
    fail(breaker, 5)
    breaker.leave(early[0], "success")
    assert breaker.state == "open"
    clock.now_s += 10
    breaker.leave(breaker.enter(), "success")

    for permit in early[1:]:
        breaker.leave(permit, "failure")

    assert breaker.view.failures_in_a_row == 0


def test_pause_blocks_calls_up_to_a_limit(breaker, clock):
    breaker.pause(1e9)
    assert (breaker.enter(), breaker.blocked_for_s, breaker.state) == (None, 120, "closed")
    clock.now_s += 120

    assert breaker.enter() is not None


class Histories(RuleBasedStateMachine):
    """Compares the breaker with a simple model of its rules."""

    permits = Bundle("permits")

    def __init__(self):
        super().__init__()
        self.clock = Clock()
        self.rules = BreakerRules(failures_max=3, recent_count=6, recent_s=30, open_s=10, open_max_s=40)
        self.breaker = CircuitBreaker(self.clock, self.rules)
        self.era = 0
        self.outcomes = []  # (time, is a failure) since it last closed
        self.open_until_s = None
        self.open_s = 10
        self.paused_until_s = 0
        self.probe = None

    @rule(seconds=st.sampled_from([0, 0.5, 1, 5, 9.5, 10, 20, 40]))
    def wait(self, seconds):
        self.clock.now_s += seconds

    @rule(seconds=st.sampled_from([0, 1, 10]))
    def pause(self, seconds):
        self.breaker.pause(seconds)
        self.paused_until_s = max(self.paused_until_s, self.clock.now_s + seconds)

    @rule(target=permits)
    def enter(self):
        now_s = self.clock.now_s
        may = now_s >= self.paused_until_s and (
            self.open_until_s is None or (now_s >= self.open_until_s and self.probe is None)
        )
        permit = self.breaker.enter()
        assert (permit is not None) == may
        if may and self.open_until_s is not None:
            self.probe = permit
        return (self.era, permit)

    @rule(entered=consumes(permits), health=st.sampled_from(["success", "failure", "failure", "unknown"]))
    def leave(self, entered, health):
        era, permit = entered
        if permit is None:
            return
        opened = self.breaker.leave(permit, health)
        expected = False
        if era == self.era and permit is self.probe:
            self.probe = None
            if health == "success":
                self.era, self.outcomes, self.open_until_s, self.open_s = self.era + 1, [], None, 10
            elif health == "failure":
                self.open_s = min(self.open_s * 2, 40)
                expected = True
        elif era == self.era and health != "unknown":
            self.outcomes.append((self.clock.now_s, health == "failure"))
            last = self.outcomes[-6:]
            in_a_row = len(self.outcomes) >= 3 and all(ill for _, ill in self.outcomes[-3:])
            is_recent = len(last) == 6 and last[0][0] >= self.clock.now_s - 30
            expected = in_a_row or (is_recent and sum(ill for _, ill in last) >= 3)
        if expected:
            self.era += 1
            self.open_until_s = self.clock.now_s + self.open_s
            self.outcomes = []
        assert opened == expected

    @invariant()
    def it_says_how_it_is(self):
        expected = (
            "closed"
            if self.open_until_s is None
            else "open"
            if self.clock.now_s < self.open_until_s
            else "half_open"
        )
        assert self.breaker.state == expected


Histories.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestHistories = Histories.TestCase
