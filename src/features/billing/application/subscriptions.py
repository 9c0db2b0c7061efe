from dataclasses import dataclass

from features.billing.application.ports import BillingQueries
from features.billing.domain.subscriptions import AccountBilling
from shared.caller import Caller


@dataclass(frozen=True, slots=True)
class Subscriptions:
    queries: BillingQueries

    async def current(self, caller: Caller) -> AccountBilling:
        """The account's subscription; an account without a paid plan has the free one."""
        return await self.queries.billing(caller)
