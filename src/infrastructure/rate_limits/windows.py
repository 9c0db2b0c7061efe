"""Rate limit windows in the memory of one process, and the common parts of all rate limit stores."""

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from shared.middleware.rate_limits import Limit, Verdict, Windows

# A window has 60 slots, and one more is counted because the oldest is partly inside. So no span as long as
# the window exceeds the limit, and a request leaves the window at most one slot late.
SLOTS = 60
KEYS_MAX = 100_000

Request = tuple[str, Limit]


class WindowStore(Windows, Protocol):
    async def state(self) -> str:
        """Return a short name of the store for the health check. Raises Unavailable when the store does not
        work.
        """
        ...

    async def close(self) -> None: ...


class BatchVerdict(msgspec.Struct):
    """The verdict on several requests of one client; each request takes its part of ``granted``."""

    granted: int
    remaining: int
    reset_s: float


def grouped(requests: Iterable[Request]) -> list[tuple[Request, int]]:
    """Count equal requests, sorted by key, so that all processes lock in the same order."""
    return sorted(Counter(requests).items(), key=_key)


def dealt_out(requests: list[Request], shares: dict[Request, BatchVerdict]) -> list[Verdict]:
    """Return the verdict of each request; the first requests of a client get its granted ones."""
    return [_deal(shares, request) for request in requests]


def _deal(shares: dict[Request, BatchVerdict], request: Request) -> Verdict:
    share = shares[request]
    if share.granted < 1:
        return Verdict(False, 0, share.reset_s)
    share.granted -= 1
    return Verdict(True, share.remaining + share.granted, share.reset_s)


def _key(item: tuple[Request, int]) -> str:
    return item[0][0]


class _Window:
    __slots__ = ("expires_s", "slots")

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}  # granted requests per slot, oldest slot first
        self.expires_s = 0.0


class MemoryWindows(WindowStore):
    """Windows in memory. When full, it evicts expired windows first, then the least recently granted one."""

    def __init__(self, *, now_s: Callable[[], float] = time.monotonic, keys_max: int = KEYS_MAX) -> None:
        self._now_s = now_s
        self._keys_max = keys_max
        self._windows: OrderedDict[str, _Window] = OrderedDict()  # ordered by the last grant

    def __len__(self) -> int:
        return len(self._windows)

    async def take(self, key: str, limit: Limit) -> Verdict:
        now_s = self._now_s()
        slot_s = limit.window_s / SLOTS
        newest = math.floor(now_s / slot_s)
        window = self._windows.get(key) or self._open(key, now_s)
        slots = window.slots
        for slot in [slot for slot in slots if slot < newest - SLOTS]:
            del slots[slot]
        remaining = limit.requests_max - sum(slots.values())
        is_granted = remaining > 0
        if is_granted:
            slots[newest] = slots.get(newest, 0) + 1
            window.expires_s = (newest + SLOTS + 1) * slot_s
            self._windows.move_to_end(key)
            remaining -= 1
        reset_s = 0.0 if remaining > 0 else (next(iter(slots)) + SLOTS + 1) * slot_s - now_s
        return Verdict(is_granted, max(remaining, 0), reset_s)

    def _open(self, key: str, now_s: float) -> _Window:
        while self._windows:
            longest_ago = next(iter(self._windows.values()))
            if len(self._windows) < self._keys_max and longest_ago.expires_s > now_s:
                break
            self._windows.popitem(last=False)
        return self._windows.setdefault(key, _Window())

    async def state(self) -> str:
        return "this process alone"

    async def close(self) -> None:
        self._windows.clear()
