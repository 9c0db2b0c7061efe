import asyncio
from datetime import UTC, datetime

import msgspec

from shared.caller import Caller
from shared.ids import AccountId

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    account_id: AccountId
    caller: Caller

    @property
    def claims(self):
        return self.caller.claims


def claims_of(user_id):
    return msgspec.json.encode({"sub": str(user_id), "role": "authenticated"}).decode()


async def until(condition, *, timeout_s=30.0):
    """Wait for a condition, never for a time. The condition may be async; its result is returned."""
    async with asyncio.timeout(timeout_s):
        while True:
            result = condition()
            if asyncio.iscoroutine(result):
                result = await result
            if result:
                return result
            await asyncio.sleep(0.01)
