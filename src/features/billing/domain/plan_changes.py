"""Plan changes: direction, effective time, credits, and the preview's id."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from features.billing.domain.catalog import Plan
from features.billing.domain.errors import (
    CancellationPending,
    PaymentOverdue,
    PlanUnchanged,
    PreviewExpired,
)
from features.billing.domain.subscriptions import AccountBilling, Subscription

PREVIEW_LASTS = timedelta(minutes=10)
CLOCKS_DIFFER = timedelta(seconds=30)
PREVIEW_PATTERN = "^pv_[0-9]{10}_[0-9a-f]{32}$"
IN_ORDER = ("active", "trialing")

Direction = Literal["upgrade", "downgrade"]


class PlanChange(msgspec.Struct, frozen=True, kw_only=True):
    """A permitted change, computed for the instant ``at``."""

    direction: Direction
    subscription: Subscription
    target: Plan
    at: datetime

    @property
    def effective_at(self) -> datetime:
        """An upgrade starts at once; a downgrade starts at the end of the paid period."""
        return self.at if self.direction == "upgrade" else self.subscription.period_end

    @property
    def credits_now(self) -> int:
        """Credits granted by an upgrade: the target's monthly credits less those granted in this period."""
        if self.direction == "downgrade":
            return 0
        return max(0, self.target.monthly_credits - self.subscription.credits_granted)

    def is_in_place(self, subscription: Subscription) -> bool:
        """Whether the subscription already has the change's result."""
        is_same = subscription.stripe_subscription_id == self.subscription.stripe_subscription_id
        if self.direction == "upgrade":
            return is_same and subscription.plan == self.target.name
        return is_same and subscription.next_plan == self.target.name != self.subscription.next_plan


class PlanChangePreview(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    change: PlanChange
    due_now_cents: int
    currency: str


def planned_change(subscription: Subscription, current: Plan, target: Plan, now: datetime) -> PlanChange:
    """Raises PlanUnchanged, CancellationPending or PaymentOverdue."""
    if target.name == subscription.plan:
        raise PlanUnchanged(plan=target.name)
    if subscription.cancels_at is not None:
        raise CancellationPending
    if subscription.status not in IN_ORDER:
        raise PaymentOverdue(status=subscription.status)
    return PlanChange(
        direction="upgrade" if target.rank > current.rank else "downgrade",
        subscription=subscription,
        target=target,
        # Stripe counts whole seconds and requires an instant within the period, even if clocks differ.
        at=max(now.replace(microsecond=0), subscription.period_start),
    )


def preview_id(billing: AccountBilling, target: Plan, at: datetime) -> str:
    """Id with the preview's time and a digest of subscription and target, so that any change invalidates it.
    It needs no signature because check_preview recomputes it from the current data.
    """
    subscription = billing.subscription
    facts = (
        billing.account_id,
        subscription.stripe_subscription_id,
        subscription.stripe_item_id,
        subscription.plan,
        subscription.period_start,
        subscription.credits_granted,
        subscription.next_plan,
        target.name,
        target.price_cents,
        target.monthly_credits,
    )
    seconds = int(at.timestamp())
    digest = hashlib.sha256(f"{seconds}:{facts}".encode()).hexdigest()[:32]
    return f"pv_{seconds}_{digest}"


def asked_at(identifier: str) -> datetime:
    return datetime.fromtimestamp(int(identifier.split("_")[1]), UTC)


def check_preview(identifier: str, billing: AccountBilling, target: Plan, now: datetime) -> None:
    """Raises PreviewExpired if the preview is too old or the data has changed."""
    at = asked_at(identifier)
    is_fresh = now - PREVIEW_LASTS <= at <= now + CLOCKS_DIFFER
    if not is_fresh or preview_id(billing, target, at) != identifier:
        raise PreviewExpired
