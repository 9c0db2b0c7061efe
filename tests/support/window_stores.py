"""Rate windows in both stores, with control over time."""

import time

from infrastructure.database.http.rate_limits import PostgresWindows
from infrastructure.rate_limits.windows import MemoryWindows
from shared.middleware.rate_limits import Limit
from tests.support import until

WINDOW_S = 86_400  # slots so long that none ends during a test
SLOT_S = WINDOW_S / 60

# Shifts all grants into the past by a number of slots.
SHIFT = """
update traffic.rate_windows set slot = slot - $1, ring = array(
    select ring[(place + $1) % 61 + 1] from generate_series(0, 60) as place order by place
)
"""


def limit_of(requests_max, window_s=WINDOW_S):
    return Limit("read", requests_max, window_s)


async def within_a_slot():
    """Waits until the real clock is not about to begin another slot."""
    await until(lambda: time.time() % SLOT_S < SLOT_S - 20)


class MemoryArena:
    def __init__(self):
        self.now_s = 1_000_000.0
        self.windows = MemoryWindows(now_s=lambda: self.now_s)

    async def pass_slots(self, count):
        self.now_s += count * SLOT_S


class PostgresArena:
    def __init__(self, database, owner):
        self._database = database
        self._owner = owner
        self.windows = self.another()

    def another(self):
        """Windows of a second process."""
        return PostgresWindows(self._database)

    async def pass_slots(self, count):
        await self._owner.execute(SHIFT, count)
