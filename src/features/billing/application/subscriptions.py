from dataclasses import dataclass

from features.billing.application.ports import BillingQueries
from features.billing.domain.subscriptions import SubscriptionStanding
from shared.caller import Caller


@dataclass(frozen=True, slots=True)
class Subscriptions:
    views: BillingQueries

    async def current(self, caller: Caller) -> SubscriptionStanding:
        """The account's subscription; an account without a paid plan has the free one."""
        return await self.views.standing(caller)
