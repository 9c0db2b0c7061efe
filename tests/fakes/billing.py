"""In-memory repositories of billing and a Stripe that records what it is asked to do."""

import uuid
from contextlib import asynccontextmanager
from datetime import timedelta

from msgspec.structs import replace

from features.billing.domain.catalog import Pack, Plan
from features.billing.domain.errors import PaymentFailed
from features.billing.domain.results import SubscriptionResult
from features.billing.domain.subscriptions import AccountBilling, Checkout, OpenSession, Subscription
from tests.support import NOON

ACCOUNT = uuid.UUID(int=1)
MONTH = timedelta(days=30)


def plan(name, rank, price_cents, monthly_credits):
    return Plan(
        name=name,
        title=name.title(),
        rank=rank,
        monthly_credits=monthly_credits,
        price_cents=price_cents,
        currency="usd",
        business_profiles_max=None,
        runs_at_once=1,
        bulk_max=5,
        light_per_hour=5,
        history_days=None,
    )


FREE, GROWTH, PRO = plan("free", 0, 0, 10), plan("growth", 1, 2900, 250), plan("pro", 2, 9900, 1500)
PACK = Pack(name="small", title="Small", credits=100, price_cents=1500, currency="usd")


def subscription_to(name, **fields):
    subscription = Subscription(
        plan=name,
        status="active",
        clock="internal" if name == "free" else "stripe",
        stripe_subscription_id=None if name == "free" else "sub_1",
        stripe_item_id=None if name == "free" else "si_1",
        period_start=NOON - timedelta(days=10),
        period_end=NOON + timedelta(days=20),
        next_plan=None,
        cancels_at=None,
        monthly_credits=250,
        credits_granted=250,
        price_cents=2900,
        currency="usd",
    )
    return replace(subscription, **fields)


class FakeBilling:
    """One account: the ports OfferStore, Orders, BillingQueries, SubscriptionStore and SubscriptionLocks."""

    def __init__(self, plan_name="free", *, customer_id=None):
        self.state = AccountBilling(
            account_id=ACCOUNT,
            plan=plan_name,
            stripe_customer_id=customer_id,
            subscription=subscription_to(plan_name),
        )
        self.price_ids = {}
        self.checkouts = {}
        self.applied = []
        self.locked = 0

    async def plans(self):
        return [FREE, GROWTH, PRO]

    async def packs(self):
        return [PACK]

    async def price_id(self, offer):
        return self.price_ids.get(offer.lookup_key)

    async def store_price(self, offer, price_id):
        self.price_ids[offer.lookup_key] = price_id

    async def billing(self, _caller):
        return self.state

    async def checkout(self, _caller, checkout_id):
        return self.checkouts.get(checkout_id)

    async def store_customer(self, _account_id, customer_id):
        self.state = replace(self.state, stripe_customer_id=self.state.stripe_customer_id or customer_id)
        return self.state.stripe_customer_id

    async def begin(self, order):
        for one in self.checkouts.values():
            if order.plan and one.plan and one.status in ("opening", "open"):
                return one
        return self.checkouts.setdefault(
            order.id,
            Checkout(
                id=order.id,
                account_id=order.account_id,
                plan=order.plan,
                pack=order.pack,
                credits=order.credits,
                price_cents=order.price_cents,
                currency=order.currency,
                status="opening",
                stripe_session_id=None,
                url=None,
                success_url=order.success_url,
                cancel_url=order.cancel_url,
                created_at=NOON,
                expires_at=None,
                completed_at=None,
            ),
        )

    async def opened(self, checkout, session):
        opened = replace(checkout, status="open", stripe_session_id=session.id, url=session.url)
        self.checkouts[checkout.id] = opened
        return opened

    async def close(self, checkout, status):
        self.checkouts[checkout.id] = replace(checkout, status=status)

    async def now(self):
        return NOON

    async def apply_subscription(self, account_id, snapshot, seen_at):
        self.applied.append((account_id, snapshot.id, seen_at))
        plan_name = snapshot.price_id.removeprefix("price_")
        self.state = replace(
            self.state,
            plan=plan_name,
            subscription=replace(
                self.state.subscription,
                plan=plan_name,
                cancels_at=snapshot.cancels_at,
                next_plan=snapshot.next_price_id and snapshot.next_price_id.removeprefix("price_"),
            ),
        )
        return SubscriptionResult(outcome="done")

    @asynccontextmanager
    async def hold(self, _account_id):
        self.locked += 1
        yield


class FakeStripeWrites:
    """The ports CheckoutProvider and SubscriptionProvider. ``stripe`` holds the resulting subscriptions."""

    def __init__(self, stripe):
        self.stripe = stripe
        self.calls = []
        self.is_card_declined = False

    async def publish(self, offer):
        self.calls.append(("publish", offer.name))
        return f"price_{offer.name}"

    async def open_customer(self, _account_id, *, email):
        self.calls.append(("open_customer", email))
        return "cus_new"

    async def open_checkout(self, checkout, *, customer_id, price_id):
        self.calls.append(("open_checkout", customer_id, price_id))
        return OpenSession(
            id=f"cs_{checkout.id.hex}", url=f"https://stripe.example/{checkout.id}", expires_at=NOON + MONTH
        )

    async def expire_checkout(self, session_id):
        self.calls.append(("expire_checkout", session_id))

    async def open_portal(self, customer_id, *, return_url, key):
        del key
        self.calls.append(("open_portal", customer_id, return_url))
        return "https://stripe.example/portal"

    async def due_now_cents(self, _customer_id, _change, _price_id):
        return 4_500

    async def upgrade(self, change, price_id, *, key):
        self.calls.append(("upgrade", key))
        if self.is_card_declined:
            raise PaymentFailed(reason="card_declined")
        self.stripe.change(change.subscription.stripe_subscription_id, price_id=price_id)

    async def downgrade(self, subscription, price_id, *, key):
        self.calls.append(("downgrade", key))
        self.stripe.change(subscription.id, next_price_id=price_id, schedule_id="sub_sched_1")

    async def release(self, schedule_id):
        self.calls.append(("release", schedule_id))
        (subscription,) = self.stripe.by_id
        self.stripe.change(subscription, next_price_id=None, schedule_id=None)

    async def end_with_period(self, subscription_id, *, ends, key):
        self.calls.append(("end_with_period", ends, key))
        ends_at = self.stripe.by_id[subscription_id].period_end
        self.stripe.change(subscription_id, cancels_at=ends_at if ends else None)
