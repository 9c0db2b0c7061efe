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
    """Changes of a subscription that Stripe bills, one at a time for each account. After a change the
    subscription is read from Stripe and stored, so that the caller sees it before Stripe's event arrives.
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
        """Make exactly the previewed change. Raises PreviewExpired if the subscription differs from the
        previewed one, in the database or at Stripe.
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
                return standing  # an earlier, interrupted attempt of this request made the change
            change = await self._checked(standing, plan, previewed)
            await self._write(caller, standing, change, found, key=key)
            return await self._reread(caller, standing)

    async def cancel(self, caller: Caller, *, key: UUID) -> SubscriptionStanding:
        """End the subscription at the end of the paid period. Raises AlreadyCancelled."""
        return await self._end(caller, ends=True, key=key)

    async def resume(self, caller: Caller, *, key: UUID) -> SubscriptionStanding:
        """Undo a planned cancellation or downgrade. Raises NothingToResume."""
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
            # A planned downgrade was released before the card was charged, so the stored state is outdated.
            await self._reread(caller, standing)
            raise

    async def _end(self, caller: Caller, *, ends: bool, key: UUID) -> SubscriptionStanding:
        """Raises only if Stripe's state agrees with the stored one, which may lag behind by an event."""
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
        """Return the snapshot and the database's time before the request, so a later read is never older."""
        subscription_id = standing.paid_subscription().stripe_subscription_id
        assert subscription_id is not None, "the schema says so"
        seen_at = await self.book.now()
        found = await self.records.subscription(subscription_id)
        if found is None or found.status in ("canceled", "incomplete_expired"):
            raise NoSubscription
        return found, seen_at

    async def _reread(self, caller: Caller, standing: SubscriptionStanding) -> SubscriptionStanding:
        """Read the subscription after a write. The write's own response must not be stored: its time is
        before the write, so an event processed meanwhile with the old state would count as newer.
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
