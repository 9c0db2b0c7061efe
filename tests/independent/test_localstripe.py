"""Billing against localstripe: a Stripe that others wrote, in a process of its own.

Our adapter asks it, and what it tells by its own signed webhooks goes through our intake and consumer. It has
customers, plans, subscriptions, invoices, refunds and events. It lacks what would make the rest of billing
run here: prices (it has plans, which our shapes read), checkout sessions, the portal, schedules, invoice
previews and disputes. Refunds happen, but it tells nobody of one. It ignores idempotency keys. It writes its
documents as of 2017, whatever version is asked for, and knows neither `payments` of an invoice nor `schedule`
of a subscription, so that nobody may ask to see them. An event is sent once, a second after it happened, and
never again. The simulator of our own stands in for all of these.
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

from core.wiring.inbox import consumption_on
from features.billing.application.stripe_events.receive import StripeEventReceiver
from infrastructure.database.billing.stripe_events import PostgresStripeEvents
from infrastructure.payments.stripe_client import StripeApi
from infrastructure.payments.stripe_queries import StripeQueries
from infrastructure.provider_endpoint import ProviderEndpoint
from tests.scripted_server import ScriptedServer, http
from tests.support import answers, free_port, until

SECRET = "whsec_localstripe"
PAID = "invoice.payment_succeeded"
KNOWN_PARTS = {"latest_invoice", "data.latest_invoice", "latest_charge"}
CARD = {"number": "4242424242424242", "exp_month": 12, "exp_year": 2030, "cvc": "123"}


class OldDesk(StripeApi):
    async def get(self, path, **params):
        """Without the parts that nobody had in 2017."""
        parts = [part for part in params.pop("expand", []) if part in KNOWN_PARTS]
        return await super().get(path, **params, **({"expand": parts} if parts else {}))


@pytest.fixture(scope="module")
async def localstripe():
    """Its address."""
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
async def desk(localstripe):
    async def where():
        return ProviderEndpoint(localstripe, "sk_test_x")

    desk = OldDesk(where)
    yield desk
    await desk.close()


@pytest.fixture
async def told(localstripe):
    """Whoever it tells of events."""
    async with ScriptedServer() as listener, httpx.AsyncClient() as client:
        listener.script(http(200))
        hook = {"url": listener.url, "secret": SECRET}
        (await client.post(f"{localstripe}/_config/webhooks/tests", json=hook)).raise_for_status()
        yield listener


@pytest.fixture
async def subscribed(desk, owner, tenant):
    """The subscription of a tenant to the growth plan, paid by card."""
    plan_id = f"plan_{uuid.uuid4().hex}"
    month = {"amount": 2_900, "currency": "usd", "interval": "month", "product": {"name": "Growth"}}
    await desk.post("/v1/plans", f"plan:{plan_id}", id=plan_id, **month)
    await owner.execute(
        "insert into billing_prices (stripe_price_id, plan, price_cents, currency)"
        " values ($1, 'growth', 2900, 'usd')",
        plan_id,
    )
    token = await desk.post("/v1/tokens", f"token:{plan_id}", card=CARD)
    customer = await desk.post("/v1/customers", f"customer:{plan_id}", source=token["id"])
    await owner.execute("insert into billing_customers values ($1, $2)", tenant.account_id, customer["id"])
    return await desk.post(
        "/v1/subscriptions",
        f"subscription:{plan_id}",
        customer=customer["id"],
        items=[{"plan": plan_id}],
        metadata={"account_id": str(tenant.account_id)},
    )


class Inbox:
    def __init__(self, database, desk):
        async def secrets():
            return (SECRET,)

        self.intake = StripeEventReceiver(PostgresStripeEvents(database), secrets, time.time, lambda: None)
        self.consumption = consumption_on(database.admin("tests"), StripeQueries(desk))

    async def take(self, listener):
        """Everything that was told, in whatever order, and then again; how many were new."""
        asked = listener.asked[::-1] + listener.asked
        return sum(
            [await self.intake.take(one.body, one.headers["stripe-signature"].encode()) for one in asked]
        )

    async def tell(self, kind, thing):
        """An event that it would send if it were Stripe."""
        event = {"id": f"evt_{uuid.uuid4().hex}", "object": "event", "type": kind, "livemode": False}
        event |= {"api_version": "2017-08-15", "created": int(time.time()), "data": {"object": thing}}
        body = json.dumps(event).encode()
        signature = stripe.WebhookSignature.generate_signature_header(body.decode(), SECRET)
        await self.intake.take(body, signature.encode())

    async def work(self):
        endings = []
        while claimed := await self.consumption.line.claim(1):
            endings.append((await self.consumption.consume(claimed[0]))[0])
        return endings


@pytest.fixture
async def inbox(database, desk, owner):
    await owner.execute("delete from webhook_events")
    return Inbox(database, desk)


def heard_of(subscription, listener):
    """Types of events; the listener hears of others' subscriptions too."""
    about = subscription["id"].encode()
    return {asked.json["type"] for asked in listener.asked if about in asked.body}


async def credits_of(owner, account_id):
    return await owner.fetchval(
        "select credits_available from credit_accounts where account_id = $1", account_id
    )


async def test_what_it_has_is_read_by_our_adapter(desk, subscribed):
    records = StripeQueries(desk)
    subscription = await records.subscription(subscribed["id"])
    invoice = await records.invoice(subscription.latest_invoice_id)
    listed = [found.id async for found in records.subscriptions()]

    assert (subscription.status, subscription.is_paid) == ("active", True)
    assert subscription.period_start < datetime.now(UTC) < subscription.period_end
    assert (invoice.status, invoice.paid_cents, invoice.price_id) == ("paid", 2_900, subscription.price_id)
    assert (invoice.subscription_id, invoice.payment_id is not None) == (subscription.id, True)
    assert subscription.id in listed
    assert await records.subscription("sub_none") is None


async def test_its_events_bring_a_plan_and_its_credits_once(told, subscribed, inbox, owner, tenant):
    await until(lambda: {"customer.subscription.created", PAID} <= heard_of(subscribed, told))
    new = await inbox.take(told)
    endings = await inbox.work()
    plan = await owner.fetchval("select plan from accounts where id = $1", tenant.account_id)

    assert new == len({asked.json["id"] for asked in told.asked})
    assert set(endings) <= {"applied", "ignored"}
    assert (plan, await credits_of(owner, tenant.account_id)) == ("growth", 250)


async def test_a_refund_that_it_keeps_takes_credits_back_once_we_look(
    told, subscribed, inbox, desk, owner, tenant
):
    """It tells nobody of one, so the telling is ours."""
    await until(lambda: PAID in heard_of(subscribed, told))
    await inbox.take(told)
    await inbox.work()
    before = await credits_of(owner, tenant.account_id)
    invoice = await StripeQueries(desk).invoice(subscribed["latest_invoice"])
    intent = await desk.get(f"/v1/payment_intents/{invoice.payment_id}", expand=["latest_charge"])
    await desk.post("/v1/refunds", f"refund:{invoice.id}", payment_intent=invoice.payment_id, amount=1_450)
    for _ in range(2):
        await inbox.tell("charge.refunded", intent["latest_charge"])
        await inbox.work()

    assert (before, await credits_of(owner, tenant.account_id)) == (250, 125)


async def test_a_plan_that_is_cancelled_there_ends_here(told, subscribed, inbox, desk, owner, tenant):
    sdk = await desk._sdk()  # noqa: SLF001  our desk never deletes
    await sdk.call("delete", f"/v1/subscriptions/{subscribed['id']}", {}, None)
    await until(lambda: "customer.subscription.deleted" in heard_of(subscribed, told))
    await inbox.take(told)
    await inbox.work()

    assert await owner.fetchval("select plan from accounts where id = $1", tenant.account_id) == "free"


async def test_its_list_of_events_says_what_we_were_not_told(desk, subscribed):
    now = datetime.now(UTC)
    events = StripeQueries(desk).events(since=now - timedelta(hours=1), until=now + timedelta(hours=1))

    about = [event.type async for event in events if subscribed["id"].encode() in event.payload]
    assert "customer.subscription.created" in about
