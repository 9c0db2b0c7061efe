"""Circuit breaker with one out-of-band probe."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

State = Literal["closed", "open", "half_open"]
CallResult = Literal[
    "success",
    "failure",
    "unknown",  # cancelled or rate-limited: no evidence
]

PAUSE_MAX_S = 120.0


class BreakerRules(NamedTuple):
    failures_max: int = 5  # consecutive
    recent_count: int = 20  # or: of the last 20
    recent_s: float = 30.0  # all within 30 s
    failed_share: float = 0.5  # half failed
    open_s: float = 10.0  # doubles with every failed probe
    open_max_s: float = 120.0


class BreakerView(NamedTuple):
    state: State
    failures_in_a_row: int
    blocked_for_s: float  # 0 also while a probe is in progress


@dataclass(frozen=True, slots=True, eq=False)
class BreakerPermit:
    """Permit for one call. Its result counts only if the breaker has not changed state since."""

    generation: int


class CircuitBreaker:
    """Closed: all calls pass. Open: no call passes. Half open after ``open_s``: one probe at a time, whose
    result closes or reopens the breaker. ``pause`` blocks calls independently of the state.
    """

    def __init__(self, monotonic_s: Callable[[], float], rules: BreakerRules | None = None) -> None:
        self._monotonic_s = monotonic_s
        self._rules = rules or BreakerRules()
        self._generation = 0
        self._failures_in_a_row = 0
        self._recent: deque[tuple[float, bool]] = deque(maxlen=self._rules.recent_count)
        self._open_s = self._rules.open_s
        self._open_until_s: float | None = None
        self._paused_until_s = -math.inf
        self._probe: BreakerPermit | None = None

    @property
    def state(self) -> State:
        if self._open_until_s is None:
            return "closed"
        return "open" if self._monotonic_s() < self._open_until_s else "half_open"

    @property
    def paused_for_s(self) -> float:
        return max(0.0, self._paused_until_s - self._monotonic_s())

    @property
    def blocked_for_s(self) -> float:
        """Time until a call is permitted; infinite while a probe is in progress."""
        if self.state == "half_open" and self._probe is not None:
            return math.inf
        return max(self.paused_for_s, (self._open_until_s or 0.0) - self._monotonic_s(), 0.0)

    @property
    def view(self) -> BreakerView:
        blocked_for_s = self.blocked_for_s
        return BreakerView(
            self.state, self._failures_in_a_row, blocked_for_s if blocked_for_s < math.inf else 0.0
        )

    def enter(self) -> BreakerPermit | None:
        if self.blocked_for_s > 0:
            return None
        permit = BreakerPermit(self._generation)
        if self.state == "half_open":
            self._probe = permit
        return permit

    def leave(self, permit: BreakerPermit, result: CallResult) -> bool:
        """Call exactly once per permit. Returns True when this result opened the breaker."""
        if permit.generation != self._generation:
            return False  # permit of an earlier state
        if permit is self._probe:
            self._probe = None
            return self._end_probe(result)
        if result == "unknown":
            return False
        self._failures_in_a_row = self._failures_in_a_row + 1 if result == "failure" else 0
        self._recent.append((self._monotonic_s(), result == "failure"))
        if self._has_too_many_failures():
            self._open()
            return True
        return False

    def pause(self, duration_s: float) -> None:
        """Blocks calls for the time that the provider requested."""
        until_s = self._monotonic_s() + min(duration_s, PAUSE_MAX_S)
        self._paused_until_s = max(self._paused_until_s, until_s)

    def _end_probe(self, result: CallResult) -> bool:
        if result == "success":
            self._close()
        elif result == "failure":
            self._open_s = min(self._open_s * 2, self._rules.open_max_s)
            self._open()
            return True
        return False

    def _has_too_many_failures(self) -> bool:
        if self._failures_in_a_row >= self._rules.failures_max:
            return True
        if len(self._recent) < self._rules.recent_count:
            return False
        is_recent = self._recent[0][0] >= self._monotonic_s() - self._rules.recent_s
        failed = sum(is_failure for _, is_failure in self._recent)
        return is_recent and failed >= self._rules.failed_share * len(self._recent)

    def _open(self) -> None:
        self._generation += 1
        self._open_until_s = self._monotonic_s() + self._open_s
        self._recent.clear()

    def _close(self) -> None:
        self._generation += 1
        self._open_until_s = None
        self._open_s = self._rules.open_s
        self._failures_in_a_row = 0
