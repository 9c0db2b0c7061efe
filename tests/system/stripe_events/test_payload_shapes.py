"""Stripe objects of three API versions: mapped to the same state, or rejected when unknown (T16)."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from infrastructure.payments.stripe_mapping import checkout_of, invoice_of, refund_of, subscription_of
from tests.system.stripe_events.purchases import STATE
from tests.system.stripe_events.stripe_world import World

STARTED_S = int((datetime.now(UTC) - timedelta(days=2)).timestamp())
ENDS_S = STARTED_S + 30 * 86_400


READERS = {"sub": subscription_of, "in": invoice_of, "cs": checkout_of}


class JsonWorld(World):
    """Stores Stripe's JSON documents and maps them with the adapter's functions."""

    async def _thing(self, thing_id):
        document = self.things.get(thing_id)
        return document and READERS[thing_id.partition("_")[0]](document)

    subscription = invoice = checkout = _thing

    async def refunds_of(self, charge_id):
        return [refund_of(document) for document in self.refunds.get(charge_id, [])]


class Sale:
    """Subscription and invoice documents of one sale, by Stripe API version."""

    def __init__(self, customer_id, price_id):
        self.customer_id, self.price_id = customer_id, price_id
        self.key = uuid.uuid4().hex
        self.subscription_id, self.invoice_id = f"sub_{self.key}", f"in_{self.key}"

    def current(self):
        """API version 2025-03-31.basil and later."""
        invoice = {
            **self._invoice(),
            "status": "paid",
            "parent": {
                "type": "subscription_details",
                "subscription_details": {"subscription": self.subscription_id},
            },
            "payments": {
                "object": "list",
                "data": [
                    {
                        "object": "invoice_payment",
                        "status": "paid",
                        "payment": {"type": "payment_intent", "payment_intent": f"pi_{self.key}"},
                    }
                ],
            },
            "lines": self._lines(pricing={"price_details": {"price": self.price_id}}),
        }
        item = {
            "id": "si_1",
            "price": {"id": self.price_id},
            "current_period_start": STARTED_S,
            "current_period_end": ENDS_S,
        }
        return {**self._subscription(item), "latest_invoice": invoice}, invoice

    def before_basil(self):
        """API version 2024-06-20 and earlier."""
        invoice = {
            **self._invoice(),
            "status": "paid",
            "paid": True,
            "subscription": self.subscription_id,
            "payment_intent": f"pi_{self.key}",
            "charge": f"ch_{self.key}",
            "lines": self._lines(price={"id": self.price_id}),
        }
        subscription = self._subscription({"id": "si_1", "price": {"id": self.price_id}})
        return {**subscription, **self._period(), "latest_invoice": invoice}, invoice

    def before_prices(self):
        """API version of 2017, which localstripe still uses."""
        invoice = {
            **self._invoice(),
            "paid": True,
            "date": STARTED_S,
            "subscription": self.subscription_id,
            "charge": f"ch_{self.key}",
            "lines": self._lines(plan={"id": self.price_id}),
        }
        subscription = self._subscription({"id": "si_1", "plan": {"id": self.price_id}})
        return {**subscription, **self._period(), "latest_invoice": invoice}, invoice

    def _invoice(self):
        return {
            "id": self.invoice_id,
            "object": "invoice",
            "customer": self.customer_id,
            "number": "A-1",
            "billing_reason": "subscription_create",
            "amount_due": 2900,
            "amount_paid": 2900,
            "currency": "usd",
            "created": STARTED_S,
            "status_transitions": {"paid_at": STARTED_S},
        }

    def _lines(self, **price):
        queue = {"amount": 2900, "period": {"start": STARTED_S, "end": ENDS_S}, **price}
        return {"object": "list", "data": [queue]}

    def _period(self):
        return {"current_period_start": STARTED_S, "current_period_end": ENDS_S}

    def _subscription(self, item):
        return {
            "id": self.subscription_id,
            "object": "subscription",
            "customer": self.customer_id,
            "status": "active",
            "billing_cycle_anchor": STARTED_S,
            "metadata": {},
            "items": {"object": "list", "data": [item]},
        }


@pytest.fixture
def world():
    return JsonWorld()


@pytest.fixture
def sale(customer, prices):
    return Sale(customer, prices["growth"])


@pytest.mark.parametrize("version", ["current", "before_basil", "before_prices"])
async def test_every_api_version_leads_to_the_same_state(inbox, world, owner, tenant, sale, version):
    subscription, invoice = getattr(sale, version)()
    world.things = {sale.subscription_id: subscription, sale.invoice_id: invoice}

    endings = await inbox.process_all(
        world.emit("customer.subscription.created", sale.subscription_id),
        world.emit("invoice.paid", sale.invoice_id),
    )

    assert endings == ["applied", "applied"]
    state = tuple(await owner.fetchrow(STATE, tenant.account_id))
    assert state[:4] == ("growth", 250, "growth", "active")
    assert [int(at.timestamp()) for at in state[4:6]] == [STARTED_S, ENDS_S]
    assert state[7] == ["(grant,renewal,250)"]
    assert state[10] == ["(250,2900,renewal)"]


@pytest.mark.parametrize("version", ["current", "before_basil", "before_prices"])
async def test_refund_finds_its_payment_in_every_api_version(inbox, world, tenant, sale, version):
    subscription, invoice = getattr(sale, version)()
    world.things = {sale.subscription_id: subscription, sale.invoice_id: invoice}
    payment = {} if version == "before_prices" else {"payment_intent": f"pi_{sale.key}"}
    world.refunds["ch_1"] = [
        {"id": f"re_{sale.key}", "object": "refund", "amount": 1450, "charge": f"ch_{sale.key}", **payment}
    ]

    await inbox.process_all(
        world.emit("invoice.paid", sale.invoice_id),
        world.emit("charge.refunded", "ch_1"),
    )

    assert await inbox.balance(tenant.account_id) == 125


@pytest.mark.parametrize("field", ["current_period_start", "current_period_end"])
async def test_subscription_without_a_period_stays_pending(inbox, world, owner, tenant, sale, field):
    subscription, _ = sale.current()
    del subscription["items"]["data"][0][field]
    world.things[sale.subscription_id] = subscription
    payload = world.emit("customer.subscription.created", sale.subscription_id)

    assert await inbox.process_all(payload) == ["pending"]
    assert (await inbox.row(payload))["last_error"] == "stripe_response_invalid"
    assert (
        await owner.fetchval(
            "select count(*) from subscriptions where account_id = $1 and clock = 'stripe'", tenant.account_id
        )
        == 0
    )
