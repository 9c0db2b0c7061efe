from dataclasses import dataclass

from features.billing.application.ports import BillingViews
from features.billing.domain.subscriptions import Standing
from shared.caller import Caller


@dataclass(frozen=True, slots=True)
class Subscriptions:
    views: BillingViews

    async def current(self, caller: Caller) -> Standing:
        """Every account has one: without a paid plan, the free one's."""
        return await self.views.standing(caller)
