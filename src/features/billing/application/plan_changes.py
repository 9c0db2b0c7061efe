from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from features.billing.application.catalog import Catalog
from features.billing.application.ports import (
    BillingQueries,
    StripeReader,
    SubscriptionLocks,
    SubscriptionProvider,
    SubscriptionStore,
)
from features.billing.domain.catalog import offer_of
from features.billing.domain.errors import PaymentFailed, PriceUnknown
from features.billing.domain.payment_errors import (
    AlreadyCancelled,
    NoSubscription,
    NothingToResume,
    PreviewExpired,
)
from features.billing.domain.plan_changes import (
    PlanChange,
    PlanChangePreview,
    asked_at,
    check_preview,
    planned_change,
    preview_id,
)
from features.billing.domain.stripe_snapshots import SubscriptionSnapshot
from features.billing.domain.subscriptions import SubscriptionStanding
from shared.caller import Caller


@dataclass(frozen=True, slots=True)
class PlanChanges:
    """Changes of a subscription that Stripe bills, one at a time for each account. What Stripe has after a
    change is read and booked at once, so that the caller sees it before Stripe's event arrives.
    """

    views: BillingQueries
    catalogue: Catalog
    records: StripeReader
    terms: SubscriptionProvider
    book: SubscriptionStore
    locks: SubscriptionLocks

    async def preview(self, caller: Caller, plan: str) -> PlanChangePreview:
        standing = await self.views.standing(caller)
        return await self._preview(standing, plan, await self.book.now())

    async def change(self, caller: Caller, plan: str, previewed: str, *, key: UUID) -> SubscriptionStanding:
        """As it was previewed, or not at all. Raises PreviewExpired, also when the subscription at Stripe is
        not the one that was previewed.
        """
        account_id = (await self.views.standing(caller)).account_id
        async with self.locks.hold(account_id):
            standing = await self.views.standing(caller)
            change = await self._checked(standing, plan, previewed)
            found, seen_at = await self._read(standing)
            try:
                standing = await self._booked(caller, standing, found, seen_at)
            except PriceUnknown:
                raise PreviewExpired from None
            if change.is_in_place(standing.subscription):
                return standing  # by an earlier attempt of this request, which was interrupted
            change = await self._checked(standing, plan, previewed)
            await self._write(caller, standing, change, found, key=key)
            return await self._reread(caller, standing)

    async def cancel(self, caller: Caller, *, key: UUID) -> SubscriptionStanding:
        """With the end of what is paid for."""
        return await self._end(caller, ends=True, key=key)

    async def resume(self, caller: Caller, *, key: UUID) -> SubscriptionStanding:
        """Takes back what was planned for the period's end: that it ends, or goes on smaller."""
        return await self._end(caller, ends=False, key=key)

    async def _checked(self, standing: SubscriptionStanding, plan: str, previewed: str) -> PlanChange:
        subscription = standing.paid_subscription()
        target = await self.catalogue.sold_plan(plan)
        current = await self.catalogue.plan(subscription.plan)
        change = planned_change(subscription, current, target, asked_at(previewed))
        check_preview(previewed, standing, target, await self.book.now())
        return change

    async def _write(
        self,
        caller: Caller,
        standing: SubscriptionStanding,
        change: PlanChange,
        found: SubscriptionSnapshot,
        *,
        key: UUID,
    ) -> None:
        price_id = await self.catalogue.price_id(offer_of(change.target))
        if change.direction == "downgrade":
            await self.terms.downgrade(found, price_id, key=key)
            return
        await self._release(found)
        try:
            await self.terms.upgrade(change, price_id, key=key)
        except PaymentFailed:
            # A smaller plan that was to follow was taken back before the card was charged.
            await self._reread(caller, standing)
            raise

    async def _end(self, caller: Caller, *, ends: bool, key: UUID) -> SubscriptionStanding:
        """Refused only where Stripe agrees: an event that has not arrived yet is no reason."""
        account_id = (await self.views.standing(caller)).account_id
        async with self.locks.hold(account_id):
            standing = await self.views.standing(caller)
            subscription = standing.paid_subscription()
            found, _ = await self._read(standing)
            if ends and subscription.cancels_at is not None and found.cancels_at is not None:
                raise AlreadyCancelled
            if not ends and not subscription.is_about_to_change and not found.is_about_to_change:
                raise NothingToResume
            await self._release(found)
            await self.terms.end_with_period(found.id, ends=ends, key=key)
            return await self._reread(caller, standing)

    async def _preview(self, standing: SubscriptionStanding, plan: str, now: datetime) -> PlanChangePreview:
        subscription = standing.paid_subscription()
        target = await self.catalogue.sold_plan(plan)
        current = await self.catalogue.plan(subscription.plan)
        change = planned_change(subscription, current, target, now)
        due_now_cents = 0
        if change.direction == "upgrade":
            assert standing.stripe_customer_id is not None, "who is billed is somebody"
            price_id = await self.catalogue.price_id(offer_of(target))
            due_now_cents = await self.terms.due_now_cents(standing.stripe_customer_id, change, price_id)
        return PlanChangePreview(
            id=preview_id(standing, target, now),
            change=change,
            due_now_cents=due_now_cents,
            currency=target.currency,
        )

    async def _read(self, standing: SubscriptionStanding) -> tuple[SubscriptionSnapshot, datetime]:
        """With the time before the request: what anybody reads later is at least as new."""
        subscription_id = standing.paid_subscription().stripe_subscription_id
        assert subscription_id is not None, "the schema says so"
        seen_at = await self.book.now()
        found = await self.records.subscription(subscription_id)
        if found is None or found.status in ("canceled", "incomplete_expired"):
            raise NoSubscription
        return found, seen_at

    async def _reread(self, caller: Caller, standing: SubscriptionStanding) -> SubscriptionStanding:
        """After a write. The write's own response would not do: its time is before the write, and an event
        that was processed meanwhile, with the state before the write, would count as newer.
        """
        return await self._booked(caller, standing, *await self._read(standing))

    async def _booked(
        self, caller: Caller, standing: SubscriptionStanding, found: SubscriptionSnapshot, seen_at: datetime
    ) -> SubscriptionStanding:
        await self.book.apply_subscription(standing.account_id, found, seen_at)
        return await self.views.standing(caller)

    async def _release(self, found: SubscriptionSnapshot) -> None:
        if found.schedule_id is not None:
            await self.terms.release(found.schedule_id)
