from dataclasses import dataclass

from features.billing.application.maintenance_ports import ReconciliationQueries, SubscriptionEnds
from features.billing.application.ports import StripeReader
from features.billing.domain.stripe_snapshots import SubscriptionSnapshot
from shared.ids import AccountId

IN_FORCE = frozenset({"active", "trialing"})


@dataclass(frozen=True, slots=True)
class DuplicateSubscriptions:
    """Cancels and refunds the second subscription of an account, which is billed but grants no credits.
    The progress is stored in Stripe's metadata, so an interrupted run continues where it stopped.
    """

    queries: ReconciliationQueries
    stripe_reader: StripeReader
    ends: SubscriptionEnds

    async def end(self, account_id: AccountId, snapshot: SubscriptionSnapshot) -> int | None:
        """Return the refunded cents. Return None if the other subscription is not active at Stripe either:
        the next event or an operator decides which of the two is kept.
        """
        if snapshot.surplus is None and not await self._is_other_in_force(account_id):
            return None
        await self.ends.mark_surplus(snapshot.id, "ending")
        await self.ends.cancel_now(snapshot.id)
        cents = 0
        async for invoice in self.stripe_reader.invoices_of(snapshot.id):
            if invoice.payment_id is not None and invoice.paid_cents > 0:
                await self.ends.refund_payment(invoice.payment_id)
                cents += invoice.paid_cents
        await self.ends.mark_surplus(snapshot.id, "ended")
        return cents

    async def _is_other_in_force(self, account_id: AccountId) -> bool:
        known_id = await self.queries.subscription_of(account_id)
        stored = None if known_id is None else await self.stripe_reader.subscription(known_id)
        return stored is not None and stored.status in IN_FORCE
