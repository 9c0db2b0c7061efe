"""Current state at Stripe of an event's object. The event's own content may be outdated."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec

from features.billing.application.ports import StripeReader
from features.billing.application.stripe_events.ports import SubscriptionRepository
from features.billing.domain.stripe_events import PAYMENT_FAILED, StripeEventContent, content_of
from features.billing.domain.stripe_snapshots import (
    CheckoutSnapshot,
    InvoiceSnapshot,
    ReversalSnapshot,
    SubscriptionSnapshot,
)

Nothing = Literal["type_unknown", "other_mode", "other_stripe_account", "no_subscription", "gone_at_stripe"]


class StripeState(msgspec.Struct, frozen=True, kw_only=True):
    seen_at: datetime  # the database's time before the event's own object was read
    nothing: Nothing | None = None  # why there is nothing to do
    checkout: CheckoutSnapshot | None = None
    is_payment_failed: bool = False  # from the event's type; Stripe's session does not contain it
    subscription: SubscriptionSnapshot | None = None
    subscription_seen_at: datetime | None = None  # the database's time before the subscription was read
    invoice: InvoiceSnapshot | None = None
    refunds: tuple[ReversalSnapshot, ...] = ()
    dispute: ReversalSnapshot | None = None


@dataclass(frozen=True, slots=True)
class StateFetcher:
    stripe_reader: StripeReader
    repository: SubscriptionRepository
    is_live: bool  # whether our key moves real money

    async def fetch(self, payload: bytes) -> StripeState:
        """Calls Stripe, so never call this in a transaction. Raises Unavailable, StripeShapeUnknown."""
        content = content_of(payload)
        seen_at = await self.repository.now()
        if (reason := self._reason_to_ignore(content)) is not None:
            return StripeState(seen_at=seen_at, nothing=reason)
        match content.subject:
            case "checkout":
                return await self._checkout(content, seen_at)
            case "invoice":
                return await self._invoice(content, seen_at)
            case "subscription":
                return _found(await self._with_subscription(StripeState(seen_at=seen_at), content.subject_id))
            case "dispute":
                dispute = await self.stripe_reader.dispute(content.subject_id)
                return _found(StripeState(seen_at=seen_at, dispute=dispute))
            case _:
                charge_id = content.charge_id if content.subject == "refund" else content.subject_id
                refunds = await self.stripe_reader.refunds_of(charge_id) if charge_id else []
                return _found(StripeState(seen_at=seen_at, refunds=tuple(refunds)))

    def _reason_to_ignore(self, content: StripeEventContent) -> Nothing | None:
        if content.subject is None:
            return "type_unknown"
        if content.is_for_others:
            return "other_stripe_account"
        if content.subject == "subscription" and not content.subject_id:
            return "no_subscription"  # a schedule that has not begun
        return "other_mode" if content.is_live != self.is_live else None

    async def _checkout(self, content: StripeEventContent, seen_at: datetime) -> StripeState:
        checkout = await self.stripe_reader.checkout(content.subject_id)
        state = StripeState(
            seen_at=seen_at, checkout=checkout, is_payment_failed=content.type == PAYMENT_FAILED
        )
        return _found(await self._with_subscription(state, checkout and checkout.subscription_id))

    async def _invoice(self, content: StripeEventContent, seen_at: datetime) -> StripeState:
        invoice = await self.stripe_reader.invoice(content.subject_id)
        state = StripeState(seen_at=seen_at, invoice=invoice)
        return _found(await self._with_subscription(state, invoice and invoice.subscription_id))

    async def _with_subscription(self, state: StripeState, subscription_id: str | None) -> StripeState:
        """Each read has its own time, because the time before the first read is too early for the second."""
        if subscription_id is None:
            return state
        seen_at = await self.repository.now()
        subscription = await self.stripe_reader.subscription(subscription_id)
        return msgspec.structs.replace(state, subscription=subscription, subscription_seen_at=seen_at)


def _found(state: StripeState) -> StripeState:
    things = (state.checkout, state.subscription, state.invoice, state.dispute)
    if state.refunds or any(thing is not None for thing in things):
        return state
    return StripeState(seen_at=state.seen_at, nothing="gone_at_stripe")
