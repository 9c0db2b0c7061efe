"""Postgres adapters for offers, orders and the caller's billing reads."""

from typing import Literal, LiteralString
from uuid import UUID

from asyncpg import Record

from features.billing.application.ports import BillingQueries, OfferStore, Orders
from features.billing.domain.catalog import Offer, Pack, Plan
from features.billing.domain.subscriptions import (
    AccountBilling,
    Checkout,
    Invoice,
    OpenSession,
    Order,
    Subscription,
)
from infrastructure.database.clients import AdminClient, Database
from shared.caller import Caller, no_account
from shared.ids import AccountId
from shared.pagination import LATEST, Cursor

SUBSCRIPTION: LiteralString = """
select a.id as account_id, a.plan as plan_in_force, c.stripe_customer_id, s.plan, s.status, s.clock,
    s.stripe_subscription_id, s.stripe_item_id, s.period_start, s.period_end, s.next_plan, s.cancels_at,
    case when s.renews then p.monthly_credits else 0 end as monthly_credits,
    coalesce(g.credits_granted, 0) as credits_granted, p.price_cents, p.currency
from public.accounts as a
join public.subscriptions as s on s.account_id = a.id and s.ended_at is null
join public.plans as p on p.name = s.plan
left join public.billing_customers as c on c.account_id = a.id
left join public.subscription_periods as g
    on g.account_id = s.account_id and g.subscription_id = s.id and g.period_start = s.period_start
where a.id = $1
"""
INVOICES: LiteralString = """
select i.*, coalesce(p.returned_cents, 0) as refunded_cents
from public.invoices as i
left join public.payments as p on p.account_id = i.account_id and p.stripe_payment_id = i.stripe_payment_id
where i.account_id = $1 and (i.created_at, i.id) < ($2, $3)
order by i.created_at desc, i.id desc
limit $4
"""

PLANS: LiteralString = """
select name, title, rank, monthly_credits, price_cents, currency, business_profiles_max, runs_at_once,
    bulk_max, light_per_hour, history_days
from public.plans where rank is not null order by rank
"""
PACKS: LiteralString = """
select name, title, credits, price_cents, currency from public.credit_packs
where is_offered order by credits, name
"""
PRICE: LiteralString = """
select stripe_price_id from public.billing_prices
where coalesce(plan, pack) = $2 and (plan is not null) = ($1 = 'plan') and price_cents = $3 and currency = $4
order by created_at desc limit 1
"""
KEEP_PRICE: LiteralString = """
insert into public.billing_prices (stripe_price_id, plan, pack, price_cents, currency)
values ($5, case when $1 = 'plan' then $2 end, case when $1 = 'pack' then $2 end, $3, $4)
on conflict (stripe_price_id) do update set created_at = excluded.created_at
"""
KEEP_CUSTOMER: LiteralString = """
insert into public.billing_customers (account_id, stripe_customer_id) values ($1, $2) on conflict do nothing
"""
# Updates only the id that Stripe does not know, because a concurrent request may have replaced it already.
REPLACE_CUSTOMER: LiteralString = """
update public.billing_customers set stripe_customer_id = $3, created_at = clock_timestamp()
where account_id = $1 and stripe_customer_id = $2
"""
CUSTOMER: LiteralString = "select stripe_customer_id from public.billing_customers where account_id = $1"

# Serializes an account's checkouts, so that a second request sees the checkout of the first.
LOCK: LiteralString = "select pg_advisory_xact_lock(hashtextextended('checkouts:' || $1::uuid, 0))"
CHECKOUT: LiteralString = "select * from public.checkouts where account_id = $1 and id = $2"
# Stripe keeps idempotency keys for a day, so a checkout in status opening can be continued for that long.
UNFINISHED: LiteralString = """
select * from public.checkouts
where account_id = $1 and plan is not null and status in ('opening', 'open')
    and coalesce(expires_at, created_at + interval '23 hours') > clock_timestamp()
order by created_at desc limit 1
"""
BEGIN: LiteralString = """
insert into public.checkouts (
    account_id, id, user_id, plan, pack, credits, price_cents, currency, success_url, cancel_url
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
returning *
"""
# Idempotent, and keeps the status of a checkout that Stripe's event has already completed.
OPENED: LiteralString = """
update public.checkouts
set status = case status when 'opening' then 'open' else status end, stripe_session_id = $3, url = $4,
    expires_at = $5
where account_id = $1 and id = $2 and status in ('opening', 'open', 'completed')
    and coalesce(stripe_session_id, $3) = $3
returning *
"""
CLOSE: LiteralString = """
update public.checkouts set status = $3
where account_id = $1 and id = $2 and status in ('opening', 'open')
"""


class PostgresOffers(OfferStore):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def plans(self) -> list[Plan]:
        return [Plan(**row) for row in await self._session.fetch(PLANS)]

    async def packs(self) -> list[Pack]:
        return [Pack(**row) for row in await self._session.fetch(PACKS)]

    async def price_id(self, offer: Offer) -> str | None:
        rows = await self._session.fetch(PRICE, offer.kind, offer.name, offer.price_cents, offer.currency)
        return rows[0]["stripe_price_id"] if rows else None

    async def store_price(self, offer: Offer, price_id: str) -> None:
        await self._session.fetch(
            KEEP_PRICE, offer.kind, offer.name, offer.price_cents, offer.currency, price_id
        )


class PostgresOrders(Orders):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def store_customer(self, account_id: AccountId, customer_id: str) -> str:
        await self._session.fetch(KEEP_CUSTOMER, account_id, customer_id)
        (row,) = await self._session.fetch(CUSTOMER, account_id)
        return row["stripe_customer_id"]

    async def replace_customer(self, account_id: AccountId, unknown_id: str, customer_id: str) -> str:
        await self._session.fetch(REPLACE_CUSTOMER, account_id, unknown_id, customer_id)
        (row,) = await self._session.fetch(CUSTOMER, account_id)
        return row["stripe_customer_id"]

    async def begin(self, order: Order) -> Checkout:
        async with self._session.transaction():
            await self._session.fetch(LOCK, order.account_id)
            rows = await self._session.fetch(CHECKOUT, order.account_id, order.id)
            if not rows and order.plan is not None:
                rows = await self._session.fetch(UNFINISHED, order.account_id)
            if not rows:
                rows = await self._session.fetch(
                    BEGIN,
                    order.account_id,
                    order.id,
                    order.user_id,
                    order.plan,
                    order.pack,
                    order.credits,
                    order.price_cents,
                    order.currency,
                    order.success_url,
                    order.cancel_url,
                )
            return _checkout(rows[0])

    async def opened(self, checkout: Checkout, session: OpenSession) -> Checkout | None:
        rows = await self._session.fetch(
            OPENED, checkout.account_id, checkout.id, session.id, session.url, session.expires_at
        )
        return _checkout(rows[0]) if rows else None

    async def close(self, checkout: Checkout, status: Literal["expired", "failed"]) -> None:
        await self._session.fetch(CLOSE, checkout.account_id, checkout.id, status)


class PostgresBillingQueries(BillingQueries):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def billing(self, caller: Caller) -> AccountBilling:
        rows = await self._database.fetch_for(caller, SUBSCRIPTION)
        if not rows:
            raise no_account(caller)
        row = rows[0]
        return AccountBilling(
            account_id=row["account_id"],
            plan=row["plan_in_force"],
            stripe_customer_id=row["stripe_customer_id"],
            subscription=Subscription(**{name: row[name] for name in Subscription.__struct_fields__}),
        )

    async def checkout(self, caller: Caller, checkout_id: UUID) -> Checkout | None:
        rows = await self._database.fetch_for(caller, CHECKOUT, checkout_id)
        return _checkout(rows[0]) if rows else None

    async def invoices(self, caller: Caller, *, after: Cursor | None, invoices_max: int) -> list[Invoice]:
        after = after or LATEST
        rows = await self._database.fetch_for(caller, INVOICES, after.at, after.id, invoices_max)
        return [Invoice(**{name: row[name] for name in Invoice.__struct_fields__}) for row in rows]


def _checkout(row: Record) -> Checkout:
    return Checkout(**{name: row[name] for name in Checkout.__struct_fields__})
