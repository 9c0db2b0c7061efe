"""Semaphore with a round-robin queue per party."""

import asyncio
from collections.abc import Hashable
from typing import NamedTuple


class Occupancy(NamedTuple):
    free: int
    waiting: int


class FairSemaphore:
    """Waiting parties are served in turns, and calls of one party in the order of arrival: a thousand calls
    of one party delay another by at most one call.
    """

    def __init__(self, slots_max: int) -> None:
        self._free = slots_max
        self._queues: dict[
            Hashable, dict[int, asyncio.Future[None]]
        ] = {}  # the party whose turn is next first
        self._tickets = 0

    @property
    def free(self) -> int:
        return self._free

    @property
    def waiting(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    async def acquire(self, party: Hashable) -> None:
        if self._free and not self._queues:
            self._free -= 1
            return
        self._tickets += 1
        ticket = self._tickets
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(party, {})[ticket] = turn
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # the slot was assigned at the moment of the cancellation
            self._forget(party, ticket)
            raise

    def release(self) -> None:
        while self._queues:
            party, queue = next(iter(self._queues.items()))
            turn = queue.pop(next(iter(queue)))
            del self._queues[party]
            if queue:
                self._queues[party] = queue  # to the end of the queue
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _forget(self, party: Hashable, ticket: int) -> None:
        queue = self._queues.get(party)
        if queue is not None:
            queue.pop(ticket, None)
            if not queue:
                del self._queues[party]
