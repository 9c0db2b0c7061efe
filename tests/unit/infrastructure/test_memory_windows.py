import itertools

from hypothesis import given
from hypothesis import strategies as st

from infrastructure.rate_limits.windows import MemoryWindows
from shared.middleware.rate_limits import Limit
from tests.support.window_stores import limit_of


class Clock:
    def __init__(self):
        self.now_ms = 1_000_000

    def __call__(self):
        return self.now_ms / 1_000


def made(limit, now_s=None, **options):
    """Windows and a function that counts the granted of a hundred requests under a key."""
    windows = MemoryWindows(now_s=now_s or Clock(), **options)

    async def granted(key):
        verdicts = [await windows.take(key, limit) for _ in range(100)]
        return sum(verdict.is_granted for verdict in verdicts)

    return windows, granted


def finished(coroutine):
    """The result of a coroutine that never waits and needs no event loop."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waited")


@given(
    limit=st.builds(
        Limit, st.just("read"), st.integers(1, 6), st.one_of(st.integers(1, 9), st.just(60), st.just(3_600))
    ),
    pauses=st.lists(
        st.one_of(st.just(0.0), st.floats(0, 1.2), st.floats(0, 0.1), st.floats(0.95, 1.05)), max_size=80
    ),
)
def test_any_history_matches_a_log_of_grant_times(limit, pauses):
    """Pauses are fractions of the window. A window never grants more than the limit, and never rejects while
    fewer than the limit were granted in a window and two slots.
    """
    clock = Clock()
    windows = MemoryWindows(now_s=clock)
    window_ms = limit.window_s * 1_000
    granted_ms = []
    for pause in pauses:
        clock.now_ms += round(pause * window_ms)
        recent = sum(at > clock.now_ms - window_ms for at in granted_ms)
        lately = sum(at > clock.now_ms - window_ms * 62 / 60 for at in granted_ms)

        verdict = finished(windows.take("k", limit))

        if verdict.is_granted:
            granted_ms.append(clock.now_ms)
            assert recent < limit.requests_max
        else:
            assert lately >= limit.requests_max
            assert 0 < verdict.reset_s <= limit.window_s * 62 / 60


@given(st.integers(1, 5), st.lists(st.floats(0, 0.5), min_size=1, max_size=20))
def test_request_after_reset_s_is_granted(requests_max, pauses):
    clock = Clock()
    windows = MemoryWindows(now_s=clock)
    for pause in itertools.cycle(pauses):
        verdict = finished(windows.take("k", limit_of(requests_max, 60)))
        if not verdict.is_granted:
            break
        clock.now_ms += round(pause * 60_000 / 50)

    clock.now_ms += int(verdict.reset_s * 1_000) + 1

    assert finished(windows.take("k", limit_of(requests_max, 60))).is_granted


async def test_expired_windows_are_removed():
    clock = Clock()
    windows, granted = made(limit_of(2, 60), clock)
    for number in range(50):
        await granted(f"old {number}")
    clock.now_ms += 61_001

    await granted("new")

    assert len(windows) == 1


async def test_active_window_is_not_removed():
    clock = Clock()
    _, granted = made(limit_of(2, 60), clock)
    await granted("mine")
    clock.now_ms += 59_000

    await granted("another's")

    assert await granted("mine") == 0


async def test_number_of_windows_is_limited():
    windows, granted = made(limit_of(2, 60), keys_max=10)
    for number in range(30):
        await granted(f"key {number}")

    assert len(windows) == 10
    assert await granted("key 29") == 0
