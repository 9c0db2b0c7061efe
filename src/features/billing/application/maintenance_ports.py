"""What the jobs that keep us and Stripe together need."""

from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from features.billing.application.ports import SubscriptionStore
from features.billing.domain.results import Renewable
from features.billing.domain.stripe_snapshots import InvoiceSnapshot, SubscriptionSnapshot, Surplus
from shared.ids import AccountId

AccountStanding = Literal["active", "deleted", "gone"]


class RenewalStore(SubscriptionStore, Protocol):
    async def renewable(self, subscriptions_max: int) -> list[Renewable]:
        """Of both clocks, those due the longest first."""
        ...

    async def renew_own(self, subscriptions_max: int) -> tuple[int, int]:
        """How many subscriptions of our own clock were renewed, and the credits that this brought."""
        ...


class SubscriptionSyncStore(SubscriptionStore, Protocol):
    def transaction(self) -> AbstractAsyncContextManager[None]: ...

    async def account_of(
        self, *, customer_id: str | None = None, subscription_id: str | None = None
    ) -> AccountId | None: ...


class InvoiceStore(SubscriptionSyncStore, Protocol):
    async def plan_of(self, price_id: str) -> str | None: ...

    async def save_invoice(self, account_id: AccountId, invoice: InvoiceSnapshot, seen_at: datetime) -> bool:
        """Whether anything in it is news."""
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

    async def note_payment(
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
    """Of our own side, what is compared."""

    async def standing_of(self, account_id: AccountId) -> AccountStanding: ...

    async def row_of(self, stripe_subscription_id: str) -> UUID | None: ...

    async def subscription_of(self, account_id: AccountId) -> str | None:
        """Stripe's id of the one that is not ended here."""
        ...

    async def unseen_since(self, seen_at: datetime, subscriptions_max: int) -> list[tuple[AccountId, str]]:
        """Subscriptions of Stripe's clock that are not ended here and that nobody has looked at since."""
        ...


class SubscriptionEnds(Protocol):
    """At Stripe. Every call may be repeated."""

    async def cancel_now(self, subscription_id: str) -> SubscriptionSnapshot: ...

    async def mark_surplus(self, subscription_id: str, surplus: Surplus) -> None:
        """So that its snapshots say so from now on; also when it is cancelled."""
        ...

    async def give_back(self, payment_id: str) -> None:
        """All that is left of a payment for a surplus subscription."""
        ...
