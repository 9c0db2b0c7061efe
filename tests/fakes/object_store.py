"""Object store in memory, with a replaceable clock and simulated outages."""

import asyncio
from datetime import UTC, datetime

from infrastructure.object_store.port import (
    ObjectStore,
    ObjectStoreUnavailable,
    check_key,
    check_size,
)


class MemoryStore(ObjectStore):
    def __init__(self):
        self.objects = {}
        self.stored_at = {}
        self.now = lambda: datetime.now(UTC)
        self.outage = None  # None, "down" or "hangs"
        self.asked = []

    async def _reach(self, verb, key):
        self.asked.append((verb, key))
        if self.outage == "hangs":
            await asyncio.Event().wait()
        if self.outage == "down":
            raise ObjectStoreUnavailable(reason="Down")

    async def get(self, key):
        check_key(key)
        await self._reach("get", key)
        return self.objects.get(key)

    async def put(self, key, data):
        check_key(key)
        check_size(len(data))
        await self._reach("put", key)
        self.objects[key] = bytes(data)
        self.stored_at[key] = self.now()

    async def delete(self, key):
        check_key(key)
        await self._reach("delete", key)
        self.objects.pop(key, None)

    async def probe(self):
        await self._reach("probe", "")
        return "memory"

    async def close(self):
        pass
