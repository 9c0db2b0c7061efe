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
from features.billing.domain.errors import (
    AlreadyCancelled,
    NoSubscription,
    NothingToResume,
    PaymentFailed,
    PreviewExpired,
    PriceUnknown,
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
from features.billing.domain.subscriptions import AccountBilling
from shared.caller import Caller


@dataclass(frozen=True, slots=True)
class PlanChanges:
    """Changes of a subscription that Stripe bills, one at a time for each account. After a change the
    subscription is read from Stripe and stored, so that the caller sees it before Stripe's event arrives.
    """

    queries: BillingQueries
    catalog: Catalog
    stripe_reader: StripeReader
    subscription_provider: SubscriptionProvider
    repository: SubscriptionStore
    locks: SubscriptionLocks

    async def preview(self, caller: Caller, plan: str) -> PlanChangePreview:
        billing = await self.queries.billing(caller)
        return await self._preview(billing, plan, await self.repository.now())

    async def change(self, caller: Caller, plan: str, previewed: str, *, key: UUID) -> AccountBilling:
        """Make exactly the previewed change. Raises PreviewExpired if the subscription differs from the
        previewed one, in the database or at Stripe.
        """
        account_id = (await self.queries.billing(caller)).account_id
        async with self.locks.hold(account_id):
            billing = await self.queries.billing(caller)
            change = await self._checked(billing, plan, previewed)
            found, seen_at = await self._read(billing)
            try:
                billing = await self._applied(caller, billing, found, seen_at)
            except PriceUnknown:
                raise PreviewExpired from None
            if change.is_in_place(billing.subscription):
                return billing  # an earlier, interrupted attempt of this request made the change
            change = await self._checked(billing, plan, previewed)
            await self._write(caller, billing, change, found, key=key)
            return await self._reread(caller, billing)

    async def cancel(self, caller: Caller, *, key: UUID) -> AccountBilling:
        """End the subscription at the end of the paid period. Raises AlreadyCancelled."""
        return await self._end(caller, ends=True, key=key)

    async def resume(self, caller: Caller, *, key: UUID) -> AccountBilling:
        """Undo a planned cancellation or downgrade. Raises NothingToResume."""
        return await self._end(caller, ends=False, key=key)

    async def _checked(self, billing: AccountBilling, plan: str, previewed: str) -> PlanChange:
        subscription = billing.paid_subscription()
        target = await self.catalog.sold_plan(plan)
        current = await self.catalog.plan(subscription.plan)
        change = planned_change(subscription, current, target, asked_at(previewed))
        check_preview(previewed, billing, target, await self.repository.now())
        return change

    async def _write(
        self,
        caller: Caller,
        billing: AccountBilling,
        change: PlanChange,
        found: SubscriptionSnapshot,
        *,
        key: UUID,
    ) -> None:
        price_id = await self.catalog.price_id(offer_of(change.target))
        if change.direction == "downgrade":
            await self.subscription_provider.downgrade(found, price_id, key=key)
            return
        await self._release(found)
        try:
            await self.subscription_provider.upgrade(change, price_id, key=key)
        except PaymentFailed:
            # A planned downgrade was released before the card was charged, so the stored state is outdated.
            await self._reread(caller, billing)
            raise

    async def _end(self, caller: Caller, *, ends: bool, key: UUID) -> AccountBilling:
        """Raises only if Stripe's state agrees with the stored one, which may lag behind by an event."""
        account_id = (await self.queries.billing(caller)).account_id
        async with self.locks.hold(account_id):
            billing = await self.queries.billing(caller)
            subscription = billing.paid_subscription()
            found, _ = await self._read(billing)
            if ends and subscription.cancels_at is not None and found.cancels_at is not None:
                raise AlreadyCancelled
            if not ends and not subscription.is_about_to_change and not found.is_about_to_change:
                raise NothingToResume
            await self._release(found)
            await self.subscription_provider.end_with_period(found.id, ends=ends, key=key)
            return await self._reread(caller, billing)

    async def _preview(self, billing: AccountBilling, plan: str, now: datetime) -> PlanChangePreview:
        subscription = billing.paid_subscription()
        target = await self.catalog.sold_plan(plan)
        current = await self.catalog.plan(subscription.plan)
        change = planned_change(subscription, current, target, now)
        due_now_cents = 0
        if change.direction == "upgrade":
            assert billing.stripe_customer_id is not None, "a paid subscription has a customer"
            price_id = await self.catalog.price_id(offer_of(target))
            due_now_cents = await self.subscription_provider.due_now_cents(
                billing.stripe_customer_id, change, price_id
            )
        return PlanChangePreview(
            id=preview_id(billing, target, now),
            change=change,
            due_now_cents=due_now_cents,
            currency=target.currency,
        )

    async def _read(self, billing: AccountBilling) -> tuple[SubscriptionSnapshot, datetime]:
        """Return the snapshot and the database's time before the request, so a later read is never older."""
        subscription_id = billing.paid_subscription().stripe_subscription_id
        assert subscription_id is not None, "the schema says so"
        seen_at = await self.repository.now()
        found = await self.stripe_reader.subscription(subscription_id)
        if found is None or found.status in ("canceled", "incomplete_expired"):
            raise NoSubscription
        return found, seen_at

    async def _reread(self, caller: Caller, billing: AccountBilling) -> AccountBilling:
        """Read the subscription after a write. The write's own response must not be stored: its time is
        before the write, so an event processed meanwhile with the old state would count as newer.
        """
        return await self._applied(caller, billing, *await self._read(billing))

    async def _applied(
        self, caller: Caller, billing: AccountBilling, found: SubscriptionSnapshot, seen_at: datetime
    ) -> AccountBilling:
        await self.repository.apply_subscription(billing.account_id, found, seen_at)
        return await self.queries.billing(caller)

    async def _release(self, found: SubscriptionSnapshot) -> None:
        if found.schedule_id is not None:
            await self.subscription_provider.release(found.schedule_id)
