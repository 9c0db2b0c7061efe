"""Interface of the semaphore that limits concurrency across processes."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from shared.errors import Unavailable


class SlotLost(Unavailable):
    """The slot was lost and may have another holder: the work under it was cancelled."""

    code = "slot_lost"
    text = "The slot for {name} was lost. Try again."


class SlotsBusy(Unavailable):
    """No slot became free within the caller's waiting time."""

    code = "slots_busy"
    text = "All slots for {name} are in use. Try again."


class DistributedSemaphore(Protocol):
    def acquire(self, name: str, limit: int) -> AbstractAsyncContextManager[None]:
        """Waits for one of ``limit`` slots, first in, first out within a process. Raises Unavailable when the
        database does not answer. When the slot is lost, the task inside is cancelled and the block raises
        SlotLost.
        """
        ...

    def acquire_now(self, name: str, limit: int) -> AbstractAsyncContextManager[bool]:
        """Yields True and holds a slot if one is free and no call waits for it. Never waits, never fails."""
        ...
