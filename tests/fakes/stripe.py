"""In-memory Stripe for cron jobs, with recorded cancellations and refunds."""

import uuid
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from features.billing.domain.errors import PaymentsRefused
from features.billing.domain.stripe_snapshots import InvoiceSnapshot, SubscriptionSnapshot

DAY = timedelta(days=1)
PRICES = {"growth": "price_growth", "pro": "price_pro"}


def now():
    return datetime.now(UTC).replace(microsecond=0)


class FakeStripe:
    """Fake of the port StripeRecords and of the port that ends subscriptions."""

    def __init__(self):
        self.by_id = {}
        self.unlisted = set()
        self.issued = []
        self.cancelled = []
        self.refunded = []
        self.refused = set()  # payments that Stripe refuses to refund

    async def subscription(self, subscription_id):
        return self.by_id.get(subscription_id)

    async def subscriptions(self):
        for one in list(self.by_id.values()):
            if one.id not in self.unlisted:
                yield one

    async def invoices(self, *, since):
        for one in self.issued:
            if one.created_at >= since:
                yield one

    async def invoices_of(self, subscription_id):
        for one in self.issued:
            if one.subscription_id == subscription_id:
                yield one

    async def mark_surplus(self, subscription_id, surplus):
        self.change(subscription_id, surplus=surplus)

    async def refund_payment(self, payment_id):
        if payment_id in self.refused:
            raise PaymentsRefused(reason="charge_disputed")
        self.refunded.append(payment_id)

    async def cancel_now(self, subscription_id):
        self.cancelled.append(subscription_id)
        return self.change(subscription_id, status="canceled")

    def change(self, subscription_id, **changes):
        self.by_id[subscription_id] = replace(self.by_id[subscription_id], **changes)
        return self.by_id[subscription_id]

    def subscribe(self, account_id, *, plan="growth", began=None, **fields):
        """Create a paid subscription whose current period began at ``began``."""
        key, began = uuid.uuid4().hex, began or now() - DAY
        made = SubscriptionSnapshot(
            id=f"sub_{key}",
            customer_id=f"cus_{key}",
            account_id=account_id,
            item_id=f"si_{key}",
            price_id=PRICES[plan],
            status="active",
            anchor_at=began,
            period_start=began,
            period_end=began + 30 * DAY,
            is_paid=True,
        )
        self.by_id[made.id] = replace(made, **fields)
        return self.by_id[made.id]

    def invoice(self, subscription, **fields):
        made = InvoiceSnapshot(
            id=f"in_{uuid.uuid4().hex}",
            customer_id=subscription.customer_id,
            subscription_id=subscription.id,
            number="A-1",
            status="paid",
            billing_reason="subscription_cycle",
            due_cents=2900,
            paid_cents=2900,
            currency="usd",
            created_at=subscription.period_start,
            price_id=subscription.price_id,
            period_start=subscription.period_start,
            period_end=subscription.period_end,
            payment_id=f"pi_{uuid.uuid4().hex}",
        )
        self.issued.append(replace(made, **fields))
        return self.issued[-1]
