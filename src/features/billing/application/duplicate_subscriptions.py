from dataclasses import dataclass

from features.billing.application.maintenance_ports import ReconciliationQueries, SubscriptionEnds
from features.billing.application.ports import StripeReader
from features.billing.domain.stripe_snapshots import SubscriptionSnapshot
from shared.ids import AccountId

IN_FORCE = frozenset({"active", "trialing"})


@dataclass(frozen=True, slots=True)
class DuplicateSubscriptions:
    """A subscription beside another one: somebody pays twice and gets nothing for it. It is ended, and what
    was paid for it goes back. How far that has come is kept at Stripe: whoever is interrupted goes on.
    """

    looks: ReconciliationQueries
    records: StripeReader
    ends: SubscriptionEnds

    async def end(self, account_id: AccountId, snapshot: SubscriptionSnapshot) -> int | None:
        """The cents that went back. None: the other one is not in force at Stripe either, so which of them is
        meant is for the next news, or for a person, to say.
        """
        if snapshot.surplus is None and not await self._is_other_in_force(account_id):
            return None
        await self.ends.mark_surplus(snapshot.id, "ending")
        await self.ends.cancel_now(snapshot.id)
        cents = 0
        async for invoice in self.records.invoices_of(snapshot.id):
            if invoice.payment_id is not None and invoice.paid_cents > 0:
                await self.ends.give_back(invoice.payment_id)
                cents += invoice.paid_cents
        await self.ends.mark_surplus(snapshot.id, "ended")
        return cents

    async def _is_other_in_force(self, account_id: AccountId) -> bool:
        known_id = await self.looks.subscription_of(account_id)
        known = None if known_id is None else await self.records.subscription(known_id)
        return known is not None and known.status in IN_FORCE
