"""What became of Stripe's word here."""

from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

import msgspec

from shared.ids import AccountId


class SubscriptionResult(msgspec.Struct, frozen=True, kw_only=True):
    """``stale``: something newer was known. ``incomplete``: it was never paid, nothing is kept.
    ``second_subscription``: the account has another. ``surplus``: it was ended for that, and paid back.
    """

    outcome: Literal["done", "stale", "incomplete", "second_subscription", "surplus", "unknown_account"]
    subscription_id: UUID | None = None  # of our row
    plan_before: str | None = None
    plan_after: str | None = None
    status_before: str | None = None
    status_after: str | None = None
    credits_granted: int = 0


class ReversalResult(msgspec.Struct, frozen=True, kw_only=True):
    outcome: Literal["done", "repeated", "unknown_payment"]
    account_id: AccountId | None
    credits_reclaimed: int  # below 0: they came back
    credits_short: int  # not available at that moment: owed


class Renewable(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription whose period is over."""

    account_id: AccountId
    subscription_id: UUID  # of our row
    plan: str
    clock: Literal["own", "stripe"]
    stripe_subscription_id: str | None
    period_start: datetime
    period_end: datetime
    monthly_credits: int


def renewal_reference(subscription_id: UUID, period_start: datetime) -> str:
    """Under what a period's credits were granted. The database builds the same, see billing.grant_period."""
    return f"renewal:{subscription_id}:{_instant(period_start)}"


def upgrade_reference(subscription_id: UUID, period_start: datetime, plan: str) -> str:
    """Under what a larger plan's difference was granted within a period."""
    return f"upgrade:{subscription_id}:{_instant(period_start)}:{plan}"


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
