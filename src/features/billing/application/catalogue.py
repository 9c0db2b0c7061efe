from dataclasses import dataclass

from features.billing.application.ports import OfferBook, Till
from features.billing.domain.offers import Offer, Pack, Plan, Published, offer_of
from features.billing.domain.refusals import PackUnknown, PlanNotSold, PlanUnknown


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What is sold, and Stripe's price for each."""

    offers: OfferBook
    till: Till

    async def plans(self) -> list[Plan]:
        return await self.offers.plans()

    async def packs(self) -> list[Pack]:
        return await self.offers.packs()

    async def plan(self, name: str) -> Plan:
        for plan in await self.offers.plans():
            if plan.name == name:
                return plan
        raise PlanUnknown(name)

    async def sold_plan(self, name: str) -> Plan:
        plan = await self.plan(name)
        if plan.price_cents == 0:
            raise PlanNotSold(name)
        return plan

    async def pack(self, name: str) -> Pack:
        for pack in await self.offers.packs():
            if pack.name == name:
                return pack
        raise PackUnknown(name)

    async def price_id(self, offer: Offer) -> str:
        """Published at the first sale, if it was not before."""
        return (await self._published(offer)).price_id

    async def publish(self) -> list[Published]:
        """Tell Stripe of everything that is sold. May be repeated."""
        items = [*await self.offers.plans(), *await self.offers.packs()]
        return [await self._published(offer_of(item)) for item in items if item.price_cents > 0]

    async def _published(self, offer: Offer) -> Published:
        known = await self.offers.price_id(offer)
        if known is not None:
            return Published(offer=offer, price_id=known, is_new=False)
        price_id = await self.till.publish(offer)
        await self.offers.keep_price(offer, price_id)
        return Published(offer=offer, price_id=price_id, is_new=True)
