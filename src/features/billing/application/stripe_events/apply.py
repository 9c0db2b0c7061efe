"""Effects of a Stripe event: copies the fetched state to the database and grants credits."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import msgspec

from features.billing.application.stripe_events.fetch_state import StripeState
from features.billing.application.stripe_events.ports import PaymentRecords, SubscriptionRepository
from features.billing.application.stripe_events.reversals import PaymentReversals
from features.billing.domain.event_queue import Effect, WaitsForAnotherEvent
from features.billing.domain.results import SubscriptionResult
from features.billing.domain.stripe_snapshots import CheckoutSnapshot, InvoiceSnapshot
from shared.ids import AccountId


class SubscriptionChange(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an event. ``account_id`` is None if the event's account is unknown."""

    is_ignored: bool = False
    account_id: AccountId | None = None
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class StripeEventEffects:
    repository: SubscriptionRepository
    notes: PaymentRecords

    async def apply(self, state: StripeState) -> SubscriptionChange:
        """Call in the transaction that marks the event processed.
        Raises WaitsForAnotherEvent, PriceUnknown.
        """
        if state.nothing is not None:
            return SubscriptionChange(is_ignored=True, effects=(Effect(what="event", outcome=state.nothing),))
        if state.refunds or state.dispute is not None:
            account_id, effects = await PaymentReversals(self.repository).apply(state)
            return SubscriptionChange(account_id=account_id, effects=effects)
        account_id = await self._account(state)
        if not await self.notes.is_account(account_id):
            gone = Effect(what="account", outcome="gone", facts={"account_id": str(account_id)})
            return SubscriptionChange(is_ignored=True, effects=(gone,))
        changes = tuple([effect async for effect in self._changes(account_id, state)])
        return SubscriptionChange(account_id=account_id, effects=changes)

    async def _account(self, state: StripeState) -> AccountId:
        """Find the account by stored Stripe ids, then by Stripe's metadata. Raises WaitsForAnotherEvent."""
        subscription, invoice, checkout = state.subscription, state.invoice, state.checkout
        customer_id = next(
            (thing.customer_id for thing in (subscription, invoice, checkout) if thing and thing.customer_id),
            None,
        )
        subscription_id = subscription.id if subscription else invoice and invoice.subscription_id
        stored = await self.repository.account_of(customer_id=customer_id, subscription_id=subscription_id)
        noted = (subscription and subscription.account_id) or (checkout and checkout.account_id)
        if (account_id := stored or noted) is None:
            raise WaitsForAnotherEvent(what=f"account of customer {customer_id}")
        return account_id

    async def _changes(self, account_id: AccountId, state: StripeState) -> AsyncIterator[Effect]:
        applied = None
        if state.subscription is not None:
            seen_at = state.subscription_seen_at or state.seen_at
            applied = await self.repository.apply_subscription(account_id, state.subscription, seen_at)
            if applied.outcome == "second_subscription":
                # The account pays twice. The event waits until the other subscription ends or the
                # subscription-sync job ends this one.
                raise WaitsForAnotherEvent(what=f"end of the subscription beside {state.subscription.id}")
            yield _subscribed(state.subscription.id, applied)
        if state.checkout is not None:
            yield await self._checked_out(account_id, state, state.checkout)
        if state.invoice is not None:
            is_news = await self.repository.save_invoice(account_id, state.invoice, state.seen_at)
            yield Effect(
                what="invoice",
                outcome="saved" if is_news else "known",
                facts={"id": state.invoice.id, "status": state.invoice.status},
            )
            if applied is not None and applied.subscription_id is not None:
                async for effect in self._paid(account_id, applied.subscription_id, state, state.invoice):
                    yield effect

    async def _checked_out(
        self, account_id: AccountId, state: StripeState, checkout: CheckoutSnapshot
    ) -> Effect:
        facts: dict[str, str | int | None] = {"id": checkout.id}
        if checkout.status == "expired" or state.is_payment_failed:
            word = "failed" if state.is_payment_failed else "expired"
            is_news = await self.repository.close_checkout(
                checkout.id, word, checkout_id=checkout.checkout_id
            )
            return Effect(what="checkout", outcome=word if is_news else "known", facts=facts)
        if checkout.status != "complete" or not checkout.is_paid:
            return Effect(what="checkout", outcome="unpaid", facts=facts)
        if checkout.mode == "subscription":
            is_news = await self.repository.close_checkout(
                checkout.id, "completed", checkout_id=checkout.checkout_id
            )
            return Effect(what="checkout", outcome="completed" if is_news else "known", facts=facts)
        bought = msgspec.structs.replace(checkout, account_id=account_id)
        credits_new = await self.repository.complete_purchase(bought)
        return Effect(
            what="checkout",
            outcome="completed" if credits_new else "known",
            facts={**facts, "credits": credits_new},
        )

    async def _paid(
        self, account_id: AccountId, subscription_id: UUID, state: StripeState, invoice: InvoiceSnapshot
    ) -> AsyncIterator[Effect]:
        """Grant the paid period, even if the event arrives after its end, and record the payment."""
        if invoice.status != "paid" or invoice.price_id is None:
            return
        plan = await self.repository.plan_of(invoice.price_id)
        if plan is None:
            return
        if _is_own_period(invoice, state):
            assert invoice.period_start is not None
            assert invoice.period_end is not None
            credits_new = await self.repository.grant_period(
                account_id,
                subscription_id,
                plan,
                period_start=invoice.period_start,
                period_end=invoice.period_end,
            )
            yield Effect(
                what="period",
                outcome="granted" if credits_new else "known",
                facts={"plan": plan, "credits": credits_new, "start": invoice.period_start.isoformat()},
            )
        if invoice.payment_id is not None and invoice.paid_cents > 0:
            is_noted = await self.notes.record_invoice(account_id, subscription_id, plan, invoice)
            yield Effect(
                what="payment",
                outcome="noted" if is_noted else "period_unknown",
                facts={"id": invoice.payment_id},
            )


def _is_own_period(invoice: InvoiceSnapshot, state: StripeState) -> bool:
    """Whether the invoice covers the current period or an earlier one. An overlapping period means a change
    within the period, whose effect apply_subscription has already applied.
    """
    subscription = state.subscription
    if subscription is None or invoice.period_start is None or invoice.period_end is None:
        return False
    return (
        invoice.period_start == subscription.period_start or invoice.period_end <= subscription.period_start
    )


def _subscribed(stripe_id: str, applied: SubscriptionResult) -> Effect:
    facts: dict[str, str | int | None] = {"id": stripe_id}
    if applied.plan_before != applied.plan_after:
        facts |= {"plan_before": applied.plan_before, "plan_after": applied.plan_after}
    if applied.status_before != applied.status_after:
        facts |= {"status_before": applied.status_before, "status_after": applied.status_after}
    if applied.credits_granted:
        facts["credits"] = applied.credits_granted
    return Effect(what="subscription", outcome=applied.outcome, facts=facts)
