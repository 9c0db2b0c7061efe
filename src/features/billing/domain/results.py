"""Results of applying Stripe's state to the database."""

from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

import msgspec

from shared.ids import AccountId


class SubscriptionResult(msgspec.Struct, frozen=True, kw_only=True):
    """``stale``: the stored state is newer. ``incomplete``: never paid, so nothing is stored.
    ``second_subscription``: the account has another one. ``surplus``: marked as a duplicate that is refunded.
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
    credits_reclaimed: int  # negative: restored
    credits_short: int  # owed, because they were no longer available


class Renewable(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription whose period is over."""

    account_id: AccountId
    subscription_id: UUID  # of our row
    plan: str
    clock: Literal["internal", "stripe"]
    stripe_subscription_id: str | None
    period_start: datetime
    period_end: datetime
    monthly_credits: int


def renewal_reference(subscription_id: UUID, period_start: datetime) -> str:
    """Ledger reference of a period's credits. billing.grant_period builds the same text in SQL."""
    return f"renewal:{subscription_id}:{_instant(period_start)}"


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
