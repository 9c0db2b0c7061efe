"""Refunds and disputes: reclaim the credits a payment bought, and restore them if the reversal fails."""

from dataclasses import dataclass
from typing import Literal

from features.billing.application.stripe_events.fetch_state import StripeState
from features.billing.application.stripe_events.ports import SubscriptionRepository
from features.billing.domain.event_queue import Effect, WaitsForAnotherEvent
from features.billing.domain.results import ReversalResult
from features.billing.domain.stripe_snapshots import ReversalSnapshot
from shared.ids import AccountId

Kind = Literal["refund", "dispute"]
# Stripe's statuses. A dispute withholds the money until it is decided, and for good when it is lost; an
# inquiry (status warning_*) withholds none. A pending refund counts as made.
TAKES: dict[Kind, tuple[str, ...]] = {
    "refund": ("succeeded", "pending"),
    "dispute": ("needs_response", "under_review", "lost"),
}
GIVES_BACK: dict[Kind, tuple[str, ...]] = {"refund": ("failed", "canceled"), "dispute": ("won",)}


@dataclass(frozen=True, slots=True)
class PaymentReversals:
    repository: SubscriptionRepository

    async def apply(self, state: StripeState) -> tuple[AccountId | None, tuple[Effect, ...]]:
        """Raises WaitsForAnotherEvent while the payment is not recorded."""
        found: list[tuple[Kind, ReversalSnapshot]] = [("refund", refund) for refund in state.refunds]
        if state.dispute is not None:
            found.append(("dispute", state.dispute))
        account_id: AccountId | None = None
        effects: list[Effect] = []
        for kind, snapshot in found:
            reversal = await self._returned(kind, snapshot)
            account_id = (reversal and reversal.account_id) or account_id
            effects.append(_effect(kind, snapshot, reversal))
        return account_id, tuple(effects)

    async def _returned(self, kind: Kind, snapshot: ReversalSnapshot) -> ReversalResult | None:
        """Returns None if the reversal moves no credits."""
        if snapshot.is_surplus:
            return None
        if snapshot.status in GIVES_BACK[kind]:
            undone = await self.repository.undo_reversal(snapshot.id)
            return None if undone.outcome == "unknown_payment" else undone
        if snapshot.status not in TAKES[kind] or snapshot.payment_id is None or snapshot.returned_cents <= 0:
            return None
        reversal = await self.repository.reverse_payment(snapshot)
        if reversal.outcome == "unknown_payment":
            raise WaitsForAnotherEvent(what=f"payment {snapshot.payment_id}")
        return reversal


def _effect(kind: Kind, snapshot: ReversalSnapshot, reversal: ReversalResult | None) -> Effect:
    facts: dict[str, str | int | None] = {"id": snapshot.id, "status": snapshot.status}
    if snapshot.is_surplus:
        return Effect(what=kind, outcome="surplus", facts=facts)
    if reversal is None:
        return Effect(what=kind, outcome="no_money", facts=facts)
    if reversal.outcome == "done":
        facts |= {"credits": -reversal.credits_reclaimed, "credits_short": reversal.credits_short}
    return Effect(what=kind, outcome=reversal.outcome, facts=facts)
