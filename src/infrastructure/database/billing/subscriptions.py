"""Postgres adapter for subscriptions, invoices and payments; schema billing has the rules."""

from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Literal, LiteralString
from uuid import UUID

from features.billing.application.ports import SubscriptionStore
from features.billing.domain.errors import CheckoutNotOurs, PriceUnknown
from features.billing.domain.results import Renewable, ReversalResult, SubscriptionResult
from features.billing.domain.stripe_snapshots import (
    CheckoutSnapshot,
    InvoiceSnapshot,
    ReversalSnapshot,
    SubscriptionSnapshot,
)
from infrastructure.database.clients import AdminClient
from shared.ids import AccountId

NOW: LiteralString = "select clock_timestamp() as now"
ACCOUNT_OF: LiteralString = """
select account_id from public.subscriptions where stripe_subscription_id = $2
union
select account_id from public.billing_customers where stripe_customer_id = $1
limit 1
"""
PLAN_OF: LiteralString = "select plan from public.billing_prices where stripe_price_id = $1"
APPLY: LiteralString = """
select outcome, subscription_id, plan_before, plan_after, status_before, status_after,
    coalesce(credits_granted, 0) as credits_granted
from billing.apply_subscription($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
"""
COMPLETE_PURCHASE: LiteralString = """
select billing.complete_purchase($1, $2, $3, $4, $5, $6, $7) as credits
"""
CLOSE_CHECKOUT: LiteralString = """
update public.checkouts
set status = $3, stripe_session_id = $1, completed_at = case when $3 = 'completed' then clock_timestamp() end
where (stripe_session_id = $1 or (stripe_session_id is null and id = $2)) and status in ('opening', 'open')
returning id
"""
# A snapshot without changes still updates seen_at, so that an older snapshot cannot overwrite it later.
SAVE_INVOICE: LiteralString = """
with known as (select * from public.invoices where stripe_invoice_id = $2)
insert into public.invoices as i (
    account_id, stripe_invoice_id, stripe_subscription_id, stripe_payment_id, number, status, billing_reason,
    due_cents, paid_cents, currency, period_start, period_end, hosted_url, pdf_url, created_at, paid_at,
    seen_at
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
on conflict (stripe_invoice_id) do update
set stripe_subscription_id = excluded.stripe_subscription_id, stripe_payment_id = excluded.stripe_payment_id,
    number = excluded.number, status = excluded.status, billing_reason = excluded.billing_reason,
    due_cents = excluded.due_cents, paid_cents = excluded.paid_cents, currency = excluded.currency,
    period_start = excluded.period_start, period_end = excluded.period_end,
    hosted_url = excluded.hosted_url, pdf_url = excluded.pdf_url, paid_at = excluded.paid_at,
    seen_at = excluded.seen_at
where i.seen_at <= excluded.seen_at and i.account_id = excluded.account_id
returning not exists (
    select from known as k
    where (k.status, k.due_cents, k.paid_cents, k.number, k.period_start, k.stripe_payment_id)
        is not distinct from
        (i.status, i.due_cents, i.paid_cents, i.number, i.period_start, i.stripe_payment_id)
) as is_news
"""
NOTE_PAYMENT: LiteralString = "select billing.record_payment($1, $2, $3, $4, $5, $6)"
GRANT_PERIOD: LiteralString = "select billing.grant_period($1, $2, $3, $4, $5) as credits"
RETURN_PAYMENT: LiteralString = """
select outcome, account_id, coalesce(credits_reclaimed, 0) as credits_reclaimed,
    coalesce(credits_short, 0) as credits_short
from billing.reverse_payment($1, $2, $3)
"""
UNDO_RETURN: LiteralString = """
select outcome, account_id, coalesce(credits_reclaimed, 0) as credits_reclaimed,
    coalesce(credits_short, 0) as credits_short
from billing.undo_reversal($1)
"""
RENEWABLE: LiteralString = "select * from public.get_renewable_subscriptions($1)"
RENEW_OWN: LiteralString = "select * from billing.renew_internal($1)"


class PostgresSubscriptionRepository(SubscriptionStore):
    """Every method is idempotent."""

    def __init__(self, session: AdminClient) -> None:
        self._session = session

    def transaction(self) -> AbstractAsyncContextManager[None]:
        return self._session.transaction()

    async def now(self) -> datetime:
        """The database's time. Read it before the request to Stripe and pass it with the snapshot."""
        (row,) = await self._session.fetch(NOW)
        return row["now"]

    async def account_of(
        self, *, customer_id: str | None = None, subscription_id: str | None = None
    ) -> AccountId | None:
        rows = await self._session.fetch(ACCOUNT_OF, customer_id, subscription_id)
        return AccountId(rows[0]["account_id"]) if rows else None

    async def plan_of(self, price_id: str) -> str | None:
        rows = await self._session.fetch(PLAN_OF, price_id)
        return rows[0]["plan"] if rows else None

    async def apply_subscription(
        self, account_id: AccountId, snapshot: SubscriptionSnapshot, seen_at: datetime
    ) -> SubscriptionResult:
        if snapshot.surplus is not None:
            return SubscriptionResult(outcome="surplus")
        (row,) = await self._session.fetch(
            APPLY,
            account_id,
            snapshot.id,
            snapshot.item_id,
            await self._known_plan(snapshot.price_id),
            snapshot.status,
            snapshot.anchor_at,
            snapshot.period_start,
            snapshot.period_end,
            None if snapshot.next_price_id is None else await self._known_plan(snapshot.next_price_id),
            snapshot.cancels_at,
            seen_at,
            snapshot.is_paid,
        )
        return SubscriptionResult(**row)

    async def _known_plan(self, price_id: str) -> str:
        plan = await self.plan_of(price_id)
        if plan is None:
            raise PriceUnknown(price_id=price_id)
        return plan

    async def complete_purchase(self, checkout: CheckoutSnapshot) -> int:
        """Return the credits granted by this call; 0 if it is a repetition. Raises CheckoutNotOurs."""
        if checkout.account_id is None:
            raise CheckoutNotOurs(session_id=checkout.id)
        (row,) = await self._session.fetch(
            COMPLETE_PURCHASE,
            checkout.account_id,
            checkout.checkout_id,
            checkout.id,
            checkout.payment_id,
            checkout.credits,
            checkout.paid_cents,
            checkout.currency,
        )
        return row["credits"]

    async def close_checkout(
        self,
        session_id: str,
        status: Literal["completed", "expired", "failed"],
        *,
        checkout_id: UUID | None = None,
    ) -> bool:
        """Returns False if it was closed before. ``checkout_id`` finds one without a stored session."""
        return bool(await self._session.fetch(CLOSE_CHECKOUT, session_id, checkout_id, status))

    async def save_invoice(self, account_id: AccountId, invoice: InvoiceSnapshot, seen_at: datetime) -> bool:
        """Return whether the stored invoice changed."""
        rows = await self._session.fetch(
            SAVE_INVOICE,
            account_id,
            invoice.id,
            invoice.subscription_id,
            invoice.payment_id,
            invoice.number,
            invoice.status,
            invoice.billing_reason,
            invoice.due_cents,
            invoice.paid_cents,
            invoice.currency,
            invoice.period_start,
            invoice.period_end,
            invoice.hosted_url,
            invoice.pdf_url,
            invoice.created_at,
            invoice.paid_at,
            seen_at,
        )
        return bool(rows) and rows[0]["is_news"]

    async def record_payment(
        self,
        account_id: AccountId,
        payment_id: str,
        *,
        grant_reference: str,
        credits: int,  # noqa: A002
        paid_cents: int,
        currency: str,
    ) -> None:
        """Record the credits that a payment bought, so that a refund can reclaim them. Ignores 0 cents."""
        if paid_cents > 0:
            await self._session.fetch(
                NOTE_PAYMENT, account_id, payment_id, grant_reference, credits, paid_cents, currency
            )

    async def grant_period(
        self,
        account_id: AccountId,
        subscription_id: UUID,
        plan: str,
        *,
        period_start: datetime,
        period_end: datetime,
    ) -> int:
        """Grant a period's credits; return those granted by this call. ``subscription_id``: our row's id."""
        (row,) = await self._session.fetch(
            GRANT_PERIOD, account_id, subscription_id, period_start, period_end, plan
        )
        return row["credits"]

    async def reverse_payment(self, reversal: ReversalSnapshot) -> ReversalResult:
        assert reversal.returned_cents > 0, "nothing went back"
        (row,) = await self._session.fetch(
            RETURN_PAYMENT, reversal.payment_id, reversal.id, reversal.returned_cents
        )
        return ReversalResult(**row)

    async def undo_reversal(self, reference: str) -> ReversalResult:
        (row,) = await self._session.fetch(UNDO_RETURN, reference)
        return ReversalResult(**row)

    async def renewable(self, subscriptions_max: int) -> list[Renewable]:
        """Subscriptions of both clocks whose period is over, the longest overdue first."""
        return [Renewable(**row) for row in await self._session.fetch(RENEWABLE, subscriptions_max)]

    async def renew_internal(self, subscriptions_max: int) -> tuple[int, int]:
        """Renew subscriptions on our own clock; return their number and the credits granted."""
        (row,) = await self._session.fetch(RENEW_OWN, subscriptions_max)
        return row["renewed"], row["credits_granted"]
