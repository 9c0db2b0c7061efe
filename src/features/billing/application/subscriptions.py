from dataclasses import dataclass

from features.billing.application.ports import BillingQueries
from features.billing.domain.subscriptions import SubscriptionStanding
from shared.caller import Caller


@dataclass(frozen=True, slots=True)
class Subscriptions:
    views: BillingQueries

    async def current(self, caller: Caller) -> SubscriptionStanding:
        """Every account has one: without a paid plan, the free one's."""
        return await self.views.standing(caller)
