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
    records: StripeReader
    book: SubscriptionRepository
    is_live: bool  # whether our key moves real money

    async def look(self, payload: bytes) -> StripeState:
        """Calls Stripe, so never call this in a transaction. Raises Unavailable, StripeShapeUnknown."""
        news = content_of(payload)
        seen_at = await self.book.now()
        if (reason := self._reason_to_ignore(news)) is not None:
            return StripeState(seen_at=seen_at, nothing=reason)
        match news.subject:
            case "checkout":
                return await self._checkout(news, seen_at)
            case "invoice":
                return await self._invoice(news, seen_at)
            case "subscription":
                return _found(await self._with_subscription(StripeState(seen_at=seen_at), news.subject_id))
            case "dispute":
                dispute = await self.records.dispute(news.subject_id)
                return _found(StripeState(seen_at=seen_at, dispute=dispute))
            case _:
                charge_id = news.charge_id if news.subject == "refund" else news.subject_id
                refunds = await self.records.refunds_of(charge_id) if charge_id else []
                return _found(StripeState(seen_at=seen_at, refunds=tuple(refunds)))

    def _reason_to_ignore(self, news: StripeEventContent) -> Nothing | None:
        if news.subject is None:
            return "type_unknown"
        if news.is_for_others:
            return "other_stripe_account"
        if news.subject == "subscription" and not news.subject_id:
            return "no_subscription"  # a schedule that has not begun
        return "other_mode" if news.is_live != self.is_live else None

    async def _checkout(self, news: StripeEventContent, seen_at: datetime) -> StripeState:
        checkout = await self.records.checkout(news.subject_id)
        findings = StripeState(
            seen_at=seen_at, checkout=checkout, is_payment_failed=news.type == PAYMENT_FAILED
        )
        return _found(await self._with_subscription(findings, checkout and checkout.subscription_id))

    async def _invoice(self, news: StripeEventContent, seen_at: datetime) -> StripeState:
        invoice = await self.records.invoice(news.subject_id)
        findings = StripeState(seen_at=seen_at, invoice=invoice)
        return _found(await self._with_subscription(findings, invoice and invoice.subscription_id))

    async def _with_subscription(self, findings: StripeState, subscription_id: str | None) -> StripeState:
        """Each read has its own time, because the time before the first read is too early for the second."""
        if subscription_id is None:
            return findings
        seen_at = await self.book.now()
        subscription = await self.records.subscription(subscription_id)
        return msgspec.structs.replace(findings, subscription=subscription, subscription_seen_at=seen_at)


def _found(findings: StripeState) -> StripeState:
    things = (findings.checkout, findings.subscription, findings.invoice, findings.dispute)
    if findings.refunds or any(thing is not None for thing in things):
        return findings
    return StripeState(seen_at=findings.seen_at, nothing="gone_at_stripe")
