"""Rate limit windows in the memory of one process."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from infrastructure.rate_limits.windows import SLOTS, WindowStore
from shared.middleware.rate_limits import Limit, Verdict

KEYS_MAX = 100_000


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
