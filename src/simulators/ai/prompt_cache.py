"""Simulated prompt cache of a provider: recently seen prefixes are reported as cached."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

BYTES_PER_TOKEN = 4
TOKENS_MIN = 1_024
TOKENS_PER_BLOCK = 128
PREFIXES_MAX = 100_000


def tokens_of(text: str) -> int:
    """Returns about the count of a real tokenizer, and at least 1 for a text that is not empty."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


class PromptCache:
    """Prefixes by digest; the least recently used is evicted first."""

    def __init__(
        self, *, prefixes_max: int = PREFIXES_MAX, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._ends: OrderedDict[bytes, float] = OrderedDict()
        self._prefixes_max = prefixes_max
        self._now = now

    def is_cached(self, prefix: bytes) -> bool:
        return self._ends.get(prefix, 0.0) > self._now()

    def add(self, prefix: bytes, *, lifetime_s: float) -> None:
        self._ends[prefix] = self._now() + lifetime_s
        self._ends.move_to_end(prefix)
        if len(self._ends) > self._prefixes_max:
            self._ends.popitem(last=False)

    def clear(self) -> None:
        self._ends.clear()

    def tokens_cached(self, owner: str, prompt: str, *, lifetime_s: float) -> int:
        """Returns the tokens of the cached prefix, in whole blocks, and caches this prompt."""
        cached = 0
        for tokens, prefix in _prefixes(owner, prompt):
            if self.is_cached(prefix):
                cached = tokens
            self.add(prefix, lifetime_s=lifetime_s)
        return cached


def _prefixes(owner: str, prompt: str) -> Iterator[tuple[int, bytes]]:
    """Yields the positions where a cached prefix can end: after the minimum length, then after each block."""
    text = prompt.encode("utf-8", "replace")
    digest = hashlib.blake2b(owner.encode(), digest_size=16)
    start = 0
    for tokens in range(TOKENS_MIN, len(text) // BYTES_PER_TOKEN + 1, TOKENS_PER_BLOCK):
        digest.update(text[start : tokens * BYTES_PER_TOKEN])
        start = tokens * BYTES_PER_TOKEN
        yield tokens, digest.digest()
