"""So many at once and no more, whichever process they are in."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from shared.errors import Unavailable


class SlotLost(Unavailable):
    """Somebody else may have it by now: what was done under it had to stop."""

    code = "slot_lost"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"The slot for {self.name} could not be kept. Try again."


class SlotsBusy(Unavailable):
    """No slot came free within the time that the caller waits for one."""

    code = "slots_busy"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"All slots for {self.name} are in use. Try again."


class DistributedSemaphore(Protocol):
    def acquire(self, name: str, limit: int) -> AbstractAsyncContextManager[None]:
        """Wait for one of ``limit`` slots, first come, first served within a process. Raises Unavailable
        when nobody can say whether one is free. When a slot is lost, the task inside is cancelled, and
        what leaves the block is SlotLost.
        """
        ...

    def acquire_now(self, name: str, limit: int) -> AbstractAsyncContextManager[bool]:
        """Whether one is free that nobody waits for; it is held as above. Never waits, never fails."""
        ...
