"""So many at a time, and everybody in turn."""

import asyncio
from collections.abc import Hashable
from typing import NamedTuple


class Dismissed(Exception):
    """What was waited for makes no sense any more."""


class Places(NamedTuple):
    free: int
    waiting: int


class _Waiter(NamedTuple):
    turn: asyncio.Future[None]
    purpose: str


class FairLimit:
    """Who waits is served in turns by party, and within a party in the order of arrival: a thousand calls
    of one do not keep another waiting for more than one call.
    """

    def __init__(self, slots_max: int) -> None:
        self._free = slots_max
        self._queues: dict[Hashable, dict[int, _Waiter]] = {}  # the party whose turn is next first
        self._tickets = 0

    @property
    def free(self) -> int:
        return self._free

    @property
    def waiting(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    async def acquire(self, party: Hashable, purpose: str) -> None:
        """Raises Dismissed when ``purpose`` is dismissed meanwhile."""
        if self._free and not self._queues:
            self._free -= 1
            return
        self._tickets += 1
        ticket = self._tickets
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(party, {})[ticket] = _Waiter(turn, purpose)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release()  # its turn came in the moment it left
            self._forget(party, ticket)
            raise

    def release(self) -> None:
        while self._queues:
            party, queue = next(iter(self._queues.items()))
            waiter = queue.pop(next(iter(queue)))
            del self._queues[party]
            if queue:
                self._queues[party] = queue  # behind the others
            if not waiter.turn.done():
                waiter.turn.set_result(None)
                return
        self._free += 1

    def dismiss(self, purpose: str) -> None:
        """Sends away whoever waits for it."""
        for party, queue in list(self._queues.items()):
            for ticket, waiter in list(queue.items()):
                if waiter.purpose == purpose:
                    self._forget(party, ticket)
                    if not waiter.turn.done():
                        waiter.turn.set_exception(Dismissed())

    def _forget(self, party: Hashable, ticket: int) -> None:
        queue = self._queues.get(party)
        if queue is not None:
            queue.pop(ticket, None)
            if not queue:
                del self._queues[party]
