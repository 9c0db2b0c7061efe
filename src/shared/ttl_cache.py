"""Bounded cache whose entries expire."""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class TtlCache(Generic[K, V]):
    """A full cache evicts the entry that was set first. None is not a value: it means that there is none."""

    def __init__(self, entries_max: int, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._entries_max = entries_max
        self._now_s = now_s
        self._entries: dict[K, tuple[V, float]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return entry[0] if entry is not None and self._now_s() < entry[1] else None

    def set(self, key: K, value: V, *, ttl_s: float) -> None:
        self._entries.pop(key, None)  # a replaced entry counts as new
        if len(self._entries) >= self._entries_max:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = (value, self._now_s() + ttl_s)
