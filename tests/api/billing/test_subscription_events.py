"""Payments, refunds and disputes from the simulated Stripe's events, processed in random order."""

import random
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from core.wiring.slices.billing import stripe_event_processor
from infrastructure.payments.stripe_subscriptions import StripeSubscriptions
from tests.support import until
from tests.support.cron_jobs import job_handlers


@pytest.fixture
async def hear_all(application, owner, database):
    """Function that fetches and processes all events in random order and returns those of an account."""
    processor = stripe_event_processor(database.admin("tests"), application.resources.payments.stripe_reader)
    since = datetime.now(UTC) - timedelta(minutes=5)

    async def hear(account_id, seed=0):
        await owner.execute("delete from webhook_events where status in ('pending', 'parked')")
        await application.dependencies["inbox"].fetch_missing(since, datetime.now(UTC) + timedelta(days=1))
        due = await owner.fetch("select stripe_event_id from webhook_events where status = 'pending'")
        ids = sorted(row["stripe_event_id"] for row in due)
        random.Random(seed).shuffle(ids)
        for place, event_id in enumerate(ids):
            await owner.execute(
                "update webhook_events set due_at = now() - interval '1 hour' + $2 * interval '1 ms'"
                " where stripe_event_id = $1",
                *(event_id, place),
            )
        while claimed := await processor.queue.claim(1):
            await processor.process(claimed[0])
        return await owner.fetch("select type, status from webhook_events where account_id = $1", account_id)

    return hear


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_events_in_any_order_activate_the_subscription(customer, hear_all, seed):
    before = await customer.credits()
    checkout = await customer.done("/checkout", {"plan": "growth"})
    await customer.pay(checkout)

    heard = await hear_all(customer.account_id, seed)

    assert {row["status"] for row in heard} == {"applied"}
    assert {row["type"] for row in heard} >= {"checkout.session.completed", "invoice.paid"}
    assert await customer.credits() - before == 250
    assert (await customer.subscription())["plan"] == "growth"
    followed = (await customer.get(f"/checkouts/{checkout['checkout_id']}")).json()
    assert followed["status"] == "completed"
    assert (await customer.get("/invoices")).json()["items"][0]["status"] == "paid"


async def test_second_subscription_is_cancelled_and_refunded(subscriber, application, hear_all):
    """The second subscription is created by hand at Stripe. Its events are parked until subscription-sync
    ends it; then they are processed.
    """
    payments = application.resources.payments
    await hear_all(subscriber.account_id)
    credits_before = await subscriber.credits()
    first = await subscriber.owner.fetchrow(
        "select stripe_subscription_id as id, stripe_customer_id as customer_id"
        " from subscriptions join billing_customers using (account_id)"
        " where account_id = $1 and clock = 'stripe'",
        subscriber.account_id,
    )
    price_id = (await payments.stripe_reader.subscription(first["id"])).price_id
    second = await payments.api.post(
        "/v1/subscriptions",
        f"by hand for {subscriber.account_id}",
        customer=first["customer_id"],
        items=[{"price": price_id}],
    )
    await hear_all(subscriber.account_id)
    waiting = await subscriber.owner.fetch(
        "select status from webhook_events where position($1::bytea in payload) > 0", second["id"].encode()
    )
    assert "parked" in {row["status"] for row in waiting}
    sync = job_handlers(
        application.resources.database, payments.stripe_reader, StripeSubscriptions(payments.api)
    )["subscription-sync"]

    report = await sync(is_dry_run=False)
    again = await sync(is_dry_run=False)
    heard = await hear_all(subscriber.account_id)

    assert second["id"] in {one.subject for one in report.findings if one.kind == "second_subscription"}
    assert second["id"] not in {one.subject for one in again.findings}
    assert (await payments.stripe_reader.subscription(second["id"])).surplus == "ended"
    assert (await payments.stripe_reader.subscription(first["id"])).status == "active"
    (invoice,) = [one async for one in payments.stripe_reader.invoices_of(second["id"])]
    (refund,) = [one async for one in payments.api.pages("/v1/refunds", payment_intent=invoice.payment_id)]
    assert (refund["amount"], refund["reason"]) == (invoice.paid_cents, "duplicate")
    assert {row["status"] for row in heard} == {"applied"}
    assert await subscriber.credits() == credits_before
    await StripeSubscriptions(payments.api).refund_payment(invoice.payment_id)


async def test_paid_pack_has_an_invoice(customer, hear_all):
    before = await customer.credits()
    paid = await customer.pay(await customer.done("/checkout", {"pack": "small"}))

    heard = await hear_all(customer.account_id)

    assert {row["status"] for row in heard} == {"applied"}
    (item,) = (await customer.get("/invoices")).json()["items"]
    assert (item["status"], item["paid_cents"]) == ("paid", paid.paid_cents)
    assert item["number"]
    assert await customer.credits() - before == 100


async def test_refund_and_dispute_reclaim_credits_and_a_won_dispute_restores_them(customer, hear_all):
    before = await customer.credits()
    paid = await customer.pay(await customer.done("/checkout", {"pack": "small"}))
    await hear_all(customer.account_id)
    assert await customer.credits() - before == 100

    refund = await customer.control.post("/refunds", json={"payment": paid.payment_id, "amount": 750})
    assert refund.status_code == 201, refund.text
    await hear_all(customer.account_id)
    assert await customer.credits() - before == 50

    dispute = (await customer.control.post("/disputes", json={"payment": paid.payment_id})).json()
    await hear_all(customer.account_id)
    assert await customer.credits() - before == 0

    await customer.control.post(f"/disputes/{dispute['id']}/close", json={"is_won": True})
    await hear_all(customer.account_id)
    assert await customer.credits() - before == 50


@pytest.mark.battery
async def test_payment_grants_credits_with_the_default_server(start, bearer):
    """`serve` without configuration runs the server, the event worker and the simulated Stripe."""
    _, port = await start("serve")
    headers = bearer()
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as http:

        async def credits_available():
            return (await http.get("/v1/credits/balance")).json()["credits_available"]

        before = await credits_available()
        checkout = (await http.post("/v1/billing/checkout", json={"pack": "small"})).json()
        await http.post(checkout["url"], data={"answer": "pay"})

        await until(lambda: has_come(credits_available, before + 100), timeout_s=60)


async def has_come(credits_available, expected):
    return await credits_available() == expected
