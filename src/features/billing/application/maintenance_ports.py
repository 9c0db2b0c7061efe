"""Ports of the jobs that reconcile the database with Stripe."""

from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from features.billing.application.ports import SubscriptionStore
from features.billing.domain.results import Renewable
from features.billing.domain.stripe_snapshots import InvoiceSnapshot, SubscriptionSnapshot, Surplus
from shared.ids import AccountId

AccountStatus = Literal["active", "deleted", "gone"]


class RenewalStore(SubscriptionStore, Protocol):
    async def renewable(self, subscriptions_max: int) -> list[Renewable]:
        """Subscriptions of both clocks whose period is over, the longest overdue first."""
        ...

    async def renew_internal(self, subscriptions_max: int) -> tuple[int, int]:
        """Renew subscriptions on our own clock; return their number and the credits granted."""
        ...


class SubscriptionSyncStore(SubscriptionStore, Protocol):
    def transaction(self) -> AbstractAsyncContextManager[None]: ...

    async def account_of(
        self, *, customer_id: str | None = None, subscription_id: str | None = None
    ) -> AccountId | None: ...


class InvoiceStore(SubscriptionSyncStore, Protocol):
    async def plan_of(self, price_id: str) -> str | None: ...

    async def save_invoice(self, account_id: AccountId, invoice: InvoiceSnapshot, seen_at: datetime) -> bool:
        """Return whether the stored invoice changed."""
        ...

    async def grant_period(
        self,
        account_id: AccountId,
        subscription_id: UUID,
        plan: str,
        *,
        period_start: datetime,
        period_end: datetime,
    ) -> int: ...

    async def record_payment(
        self,
        account_id: AccountId,
        payment_id: str,
        *,
        grant_reference: str,
        credits: int,  # noqa: A002
        paid_cents: int,
        currency: str,
    ) -> None: ...


class ReconciliationQueries(Protocol):
    """The database's side of the comparison with Stripe."""

    async def status_of(self, account_id: AccountId) -> AccountStatus: ...

    async def row_of(self, stripe_subscription_id: str) -> UUID | None: ...

    async def subscription_of(self, account_id: AccountId) -> str | None:
        """Stripe's id of the account's subscription that has not ended in the database."""
        ...

    async def unseen_since(self, seen_at: datetime, subscriptions_max: int) -> list[tuple[AccountId, str]]:
        """Running subscriptions on Stripe's clock whose last snapshot is older than ``seen_at``."""
        ...


class SubscriptionEnds(Protocol):
    """Immediate cancellation and refund at Stripe. Every call is idempotent."""

    async def cancel_now(self, subscription_id: str) -> SubscriptionSnapshot: ...

    async def mark_surplus(self, subscription_id: str, surplus: Surplus) -> None:
        """Write the marker to the metadata at Stripe; works on a cancelled subscription too."""
        ...

    async def refund_payment(self, payment_id: str) -> None:
        """Refund the remaining amount of a payment for a surplus subscription."""
        ...
