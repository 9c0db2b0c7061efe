"""What the stores of rate windows have in common."""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

import msgspec

from shared.middleware.rate_limits import Limit, Verdict, Windows

# A window is counted in slots of a sixtieth, and one more than it has: the oldest is partly inside. So no
# span as long as the window ever has more than the limit; what leaves it comes free a slot late at most.
SLOTS = 60

Request = tuple[str, Limit]


class WindowStore(Windows, Protocol):
    async def state(self) -> str:
        """In a few words where windows are kept; raises Unavailable when that does not work."""
        ...

    async def close(self) -> None: ...


class BatchVerdict(msgspec.Struct):
    """The answer to several requests of one client; each takes its part of ``granted``."""

    granted: int
    remaining: int
    reset_s: float


def grouped(requests: Iterable[Request]) -> list[tuple[Request, int]]:
    """How many of each, in the order of their keys, which is the same in every process."""
    return sorted(Counter(requests).items(), key=_key)


def dealt_out(requests: list[Request], shares: dict[Request, BatchVerdict]) -> list[Verdict]:
    """Each request its own verdict: what the first ones of a client leave is told to the next."""
    return [_deal(shares, request) for request in requests]


def _deal(shares: dict[Request, BatchVerdict], request: Request) -> Verdict:
    share = shares[request]
    if share.granted < 1:
        return Verdict(False, 0, share.reset_s)
    share.granted -= 1
    return Verdict(True, share.remaining + share.granted, share.reset_s)


def _key(item: tuple[Request, int]) -> str:
    return item[0][0]
