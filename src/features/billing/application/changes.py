from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from features.billing.application.catalogue import Catalogue
from features.billing.application.ports import BillingViews, StripeRecords, SubscriptionBook, Terms
from features.billing.domain.changes import Preview, asked_at, check_preview, planned_change, preview_id
from features.billing.domain.errors import PaymentFailed
from features.billing.domain.offers import offer_of
from features.billing.domain.refusals import AlreadyCancelled, NoSubscription, NothingToResume
from features.billing.domain.snapshots import SubscriptionSnapshot
from features.billing.domain.subscriptions import Standing
from shared.caller import Caller


@dataclass(frozen=True, slots=True)
class Changes:
    """Of a subscription that Stripe bills. What Stripe answers is booked at once, so that the caller sees it
    without waiting for Stripe's own news of it, which then changes nothing.
    """

    views: BillingViews
    catalogue: Catalogue
    records: StripeRecords
    terms: Terms
    book: SubscriptionBook

    async def preview(self, caller: Caller, plan: str) -> Preview:
        standing = await self.views.standing(caller)
        return await self._preview(standing, plan, await self.book.now())

    async def change(self, caller: Caller, plan: str, previewed: str, *, key: UUID) -> Standing:
        """As it was previewed, or not at all. Raises PreviewExpired."""
        standing = await self.views.standing(caller)
        subscription = standing.paid_subscription()
        target = await self.catalogue.sold_plan(plan)
        current = await self.catalogue.plan(subscription.plan)
        change = planned_change(subscription, current, target, asked_at(previewed))
        check_preview(previewed, standing, target, await self.book.now())
        price_id = await self.catalogue.price_id(offer_of(target))
        found = await self._look(standing)
        if change.direction == "downgrade":
            return await self._booked(
                caller, standing, partial(self.terms.downgrade, found, price_id, key=key)
            )
        await self._release(found)
        try:
            return await self._booked(
                caller, standing, partial(self.terms.upgrade, change, price_id, key=key)
            )
        except PaymentFailed:
            # A smaller plan that was to follow was taken back before the card was asked.
            await self._booked(caller, standing, partial(self._look, standing))
            raise

    async def cancel(self, caller: Caller, *, key: UUID) -> Standing:
        """With the end of what is paid for."""
        standing = await self.views.standing(caller)
        if standing.paid_subscription().cancels_at is not None:
            raise AlreadyCancelled
        return await self._end(caller, standing, ends=True, key=key)

    async def resume(self, caller: Caller, *, key: UUID) -> Standing:
        """Takes back what was planned for the period's end: that it ends, or goes on smaller."""
        standing = await self.views.standing(caller)
        subscription = standing.paid_subscription()
        if subscription.cancels_at is None and subscription.next_plan is None:
            raise NothingToResume
        return await self._end(caller, standing, ends=False, key=key)

    async def _end(self, caller: Caller, standing: Standing, *, ends: bool, key: UUID) -> Standing:
        found = await self._look(standing)
        await self._release(found)
        write = partial(self.terms.end_with_period, found.id, ends=ends, key=key)
        return await self._booked(caller, standing, write)

    async def _preview(self, standing: Standing, plan: str, now: datetime) -> Preview:
        subscription = standing.paid_subscription()
        target = await self.catalogue.sold_plan(plan)
        current = await self.catalogue.plan(subscription.plan)
        change = planned_change(subscription, current, target, now)
        due_now_cents = 0
        if change.direction == "upgrade":
            assert standing.stripe_customer_id is not None, "who is billed is somebody"
            price_id = await self.catalogue.price_id(offer_of(target))
            due_now_cents = await self.terms.due_now_cents(standing.stripe_customer_id, change, price_id)
        return Preview(
            id=preview_id(standing, target, now),
            change=change,
            due_now_cents=due_now_cents,
            currency=target.currency,
        )

    async def _look(self, standing: Standing) -> SubscriptionSnapshot:
        subscription_id = standing.paid_subscription().stripe_subscription_id
        assert subscription_id is not None, "the schema says so"
        found = await self.records.subscription(subscription_id)
        if found is None or found.status in ("canceled", "incomplete_expired"):
            raise NoSubscription
        return found

    async def _release(self, found: SubscriptionSnapshot) -> None:
        if found.schedule_id is not None:
            await self.terms.release(found.schedule_id)

    async def _booked(
        self, caller: Caller, standing: Standing, ask: Callable[[], Awaitable[SubscriptionSnapshot]]
    ) -> Standing:
        seen_at = await self.book.now()  # before Stripe is asked: what others saw later is newer
        await self.book.apply_subscription(standing.account_id, await ask(), seen_at)
        return await self.views.standing(caller)
