"""Common parts of the rate limit stores."""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

import msgspec

from shared.middleware.rate_limits import Limit, Verdict, Windows

# A window has 60 slots, and one more is counted because the oldest is partly inside. So no span as long as
# the window exceeds the limit, and a request leaves the window at most one slot late.
SLOTS = 60

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
