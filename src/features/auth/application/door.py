from dataclasses import dataclass

from features.auth.application.access import Access
from features.auth.application.callers import Callers
from shared.caller import Caller
from shared.ids import AccountId

UNKNOWN_PLAN = "free"


@dataclass(frozen=True, slots=True)
class Door:
    """What the middleware asks: who it is, on which plan, and whether they may pass."""

    callers: Callers
    access: Access

    async def identify(self, authorization: str) -> Caller:
        return await self.callers.identify(authorization)

    async def plan(self, caller: Caller) -> tuple[AccountId | None, str]:
        standing = await self.access.remembered_standing(caller)
        return (standing.account_id, standing.plan) if standing else (None, UNKNOWN_PLAN)

    async def admit(self, caller: Caller, access: str, account_id: AccountId | None) -> Caller:
        return await self.access.admit(caller, access, account_id)
