"""Billing against localstripe, an independent Stripe simulator in its own process.

Our adapter reads from localstripe, and its signed webhooks pass through our receiver and event processor. It
supports customers, plans, subscriptions, invoices, refunds and events. It lacks prices (stripe_mapping reads
its plans instead), checkout sessions, the portal, schedules, invoice previews and disputes. It sends no event
for a refund and ignores idempotency keys. Its documents have the form of 2017 whatever version is requested;
they have neither `payments` of an invoice nor `schedule` of a subscription, so the tests must not expand
these. It sends an event once, after one second, and does not retry. Our own simulator covers all of these.
"""

import asyncio
import json
import sys
import time
import uuid
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import stripe

from core.wiring.slices.billing import stripe_event_processor
from features.billing.application.stripe_events.receive import StripeEventReceiver
from infrastructure.database.billing.stripe_events import PostgresStripeEvents
from infrastructure.payments.stripe_client import StripeApi
from infrastructure.payments.stripe_queries import StripeQueries
from infrastructure.provider_endpoint import ProviderEndpoint
from tests.support import answers, free_port, until
from tests.support.scripted_server import ScriptedServer, http

SECRET = "whsec_localstripe"
PAID = "invoice.payment_succeeded"
KNOWN_PARTS = {"latest_invoice", "data.latest_invoice", "latest_charge"}
CARD = {"number": "4242424242424242", "exp_month": 12, "exp_year": 2030, "cvc": "123"}


class OldStripeApi(StripeApi):
    async def get(self, path, **params):
        """Drops expansions that did not exist in 2017."""
        parts = [part for part in params.pop("expand", []) if part in KNOWN_PARTS]
        return await super().get(path, **params, **({"expand": parts} if parts else {}))


@pytest.fixture(scope="module")
async def localstripe():
    """URL of a localstripe process."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "localstripe", "--port", str(port), "--from-scratch"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    await until(lambda: answers(port))
    yield f"http://127.0.0.1:{port}"
    process.kill()
    await process.wait()


@pytest.fixture
async def api(localstripe):
    async def where():
        return ProviderEndpoint(localstripe, "sk_test_x")

    api = OldStripeApi(where)
    yield api
    await api.close()


@pytest.fixture
async def payloads(localstripe):
    """Server that receives localstripe's webhooks."""
    async with ScriptedServer() as listener, httpx.AsyncClient() as client:
        listener.script(http(200))
        hook = {"url": listener.url, "secret": SECRET}
        (await client.post(f"{localstripe}/_config/webhooks/tests", json=hook)).raise_for_status()
        yield listener


@pytest.fixture
async def subscribed(api, owner, tenant):
    """The subscription of a tenant to the growth plan, paid by card."""
    plan_id = f"plan_{uuid.uuid4().hex}"
    month = {"amount": 2_900, "currency": "usd", "interval": "month", "product": {"name": "Growth"}}
    await api.post("/v1/plans", f"plan:{plan_id}", id=plan_id, **month)
    await owner.execute(
        "insert into billing_prices (stripe_price_id, plan, price_cents, currency)"
        " values ($1, 'growth', 2900, 'usd')",
        plan_id,
    )
    token = await api.post("/v1/tokens", f"token:{plan_id}", card=CARD)
    customer = await api.post("/v1/customers", f"customer:{plan_id}", source=token["id"])
    await owner.execute("insert into billing_customers values ($1, $2)", tenant.account_id, customer["id"])
    return await api.post(
        "/v1/subscriptions",
        f"subscription:{plan_id}",
        customer=customer["id"],
        items=[{"plan": plan_id}],
        metadata={"account_id": str(tenant.account_id)},
    )


class Inbox:
    def __init__(self, database, api):
        async def secrets():
            return (SECRET,)

        self.receiver = StripeEventReceiver(PostgresStripeEvents(database), secrets, time.time, lambda: None)
        self.processor = stripe_event_processor(database.admin("tests"), StripeQueries(api))

    async def receive(self, listener):
        """Receive every delivered event in reverse order, then again in order; return how many were new."""
        asked = listener.asked[::-1] + listener.asked
        return sum(
            [await self.receiver.receive(one.body, one.headers["stripe-signature"].encode()) for one in asked]
        )

    async def emit(self, kind, thing):
        """Receive a signed event that Stripe sends and localstripe does not."""
        event = {"id": f"evt_{uuid.uuid4().hex}", "object": "event", "type": kind, "livemode": False}
        event |= {"api_version": "2017-08-15", "created": int(time.time()), "data": {"object": thing}}
        body = json.dumps(event).encode()
        signature = stripe.WebhookSignature.generate_signature_header(body.decode(), SECRET)
        await self.receiver.receive(body, signature.encode())

    async def work(self):
        endings = []
        while claimed := await self.processor.queue.claim(1):
            endings.append((await self.processor.process(claimed[0]))[0])
        return endings


@pytest.fixture
async def inbox(database, api, owner):
    await owner.execute("delete from webhook_events")
    return Inbox(database, api)


def heard_of(subscription, listener):
    """Types of this subscription's events; the listener also receives those of other tests."""
    about = subscription["id"].encode()
    return {asked.json["type"] for asked in listener.asked if about in asked.body}


async def credits_of(owner, account_id):
    return await owner.fetchval(
        "select credits_available from credit_accounts where account_id = $1", account_id
    )


async def test_adapter_reads_localstripes_objects(api, subscribed):
    stripe_reader = StripeQueries(api)
    subscription = await stripe_reader.subscription(subscribed["id"])
    invoice = await stripe_reader.invoice(subscription.latest_invoice_id)
    listed = [found.id async for found in stripe_reader.subscriptions()]

    assert (subscription.status, subscription.is_paid) == ("active", True)
    assert subscription.period_start < datetime.now(UTC) < subscription.period_end
    assert (invoice.status, invoice.paid_cents, invoice.price_id) == ("paid", 2_900, subscription.price_id)
    assert (invoice.subscription_id, invoice.payment_id is not None) == (subscription.id, True)
    assert subscription.id in listed
    assert await stripe_reader.subscription("sub_none") is None


async def test_events_activate_the_plan_and_grant_its_credits_once(
    payloads, subscribed, inbox, owner, tenant
):
    await until(lambda: {"customer.subscription.created", PAID} <= heard_of(subscribed, payloads))
    new = await inbox.receive(payloads)
    endings = await inbox.work()
    plan = await owner.fetchval("select plan from accounts where id = $1", tenant.account_id)

    assert new == len({asked.json["id"] for asked in payloads.asked})
    assert set(endings) <= {"applied", "ignored"}
    assert (plan, await credits_of(owner, tenant.account_id)) == ("growth", 250)


async def test_refund_reclaims_credits_once(payloads, subscribed, inbox, api, owner, tenant):
    """localstripe sends no event for a refund, so the test creates one."""
    await until(lambda: PAID in heard_of(subscribed, payloads))
    await inbox.receive(payloads)
    await inbox.work()
    before = await credits_of(owner, tenant.account_id)
    invoice = await StripeQueries(api).invoice(subscribed["latest_invoice"])
    intent = await api.get(f"/v1/payment_intents/{invoice.payment_id}", expand=["latest_charge"])
    await api.post("/v1/refunds", f"refund:{invoice.id}", payment_intent=invoice.payment_id, amount=1_450)
    for _ in range(2):
        await inbox.emit("charge.refunded", intent["latest_charge"])
        await inbox.work()

    assert (before, await credits_of(owner, tenant.account_id)) == (250, 125)


async def test_subscription_cancelled_at_stripe_ends_the_plan(
    payloads, subscribed, inbox, api, owner, tenant
):
    # A delete without idempotency key, which localstripe does not accept.
    await api._call("delete", f"/v1/subscriptions/{subscribed['id']}", {}, None)  # noqa: SLF001
    await until(lambda: "customer.subscription.deleted" in heard_of(subscribed, payloads))
    await inbox.receive(payloads)
    await inbox.work()

    assert await owner.fetchval("select plan from accounts where id = $1", tenant.account_id) == "free"


async def test_event_list_contains_undelivered_events(api, subscribed):
    now = datetime.now(UTC)
    events = StripeQueries(api).events(since=now - timedelta(hours=1), until=now + timedelta(hours=1))

    about = [event.type async for event in events if subscribed["id"].encode() in event.payload]
    assert "customer.subscription.created" in about
