from dataclasses import dataclass

from features.billing.application.ports import CheckoutProvider, OfferStore
from features.billing.domain.catalog import Offer, Pack, Plan, Published, offer_of
from features.billing.domain.errors import PackUnknown, PlanNotSold, PlanUnknown


@dataclass(frozen=True, slots=True)
class Catalog:
    """Plans and packs on offer, each with its Stripe price."""

    offers: OfferStore
    checkout_provider: CheckoutProvider

    async def plans(self) -> list[Plan]:
        return await self.offers.plans()

    async def packs(self) -> list[Pack]:
        return await self.offers.packs()

    async def plan(self, name: str) -> Plan:
        for plan in await self.offers.plans():
            if plan.name == name:
                return plan
        raise PlanUnknown(plan=name)

    async def sold_plan(self, name: str) -> Plan:
        plan = await self.plan(name)
        if plan.price_cents == 0:
            raise PlanNotSold(plan=name)
        return plan

    async def pack(self, name: str) -> Pack:
        for pack in await self.offers.packs():
            if pack.name == name:
                return pack
        raise PackUnknown(pack=name)

    async def price_id(self, offer: Offer) -> str:
        """Return the stored Stripe price id; publish the offer first if it has none."""
        stored = await self.offers.price_id(offer)
        return stored or (await self.published(offer)).price_id

    async def publish(self) -> list[Published]:
        """Publish every offer with a price at Stripe. Idempotent, also with a new Stripe account."""
        items = [*await self.offers.plans(), *await self.offers.packs()]
        return [await self.published(offer_of(item)) for item in items if item.price_cents > 0]

    async def published(self, offer: Offer) -> Published:
        """Find the price at Stripe, or create it, and store its id if it differs from the stored one."""
        stored, price_id = await self.offers.price_id(offer), await self.checkout_provider.publish(offer)
        if price_id != stored:
            await self.offers.store_price(offer, price_id)
        return Published(offer=offer, price_id=price_id, is_new=price_id != stored)
