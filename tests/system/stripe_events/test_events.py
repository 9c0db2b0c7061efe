"""Effects of each Stripe event type, independent of order and repetition."""

import json
import uuid
from datetime import timedelta

import pytest

from features.billing.domain.errors import StripeShapeUnknown
from features.billing.domain.stripe_snapshots import ReversalSnapshot
from tests.integration.database.billing.snapshots import (
    STARTED_AT,
    changed,
    checkout,
    invoice,
    subscription,
)
from tests.system.stripe_events.stripe_world import event_of

NEXT_PLAN = "select next_plan from subscriptions where stripe_subscription_id = $1"


def returned(payment_id, cents, status="succeeded", kind="re"):
    return ReversalSnapshot(
        id=f"{kind}_{uuid.uuid4().hex}", payment_id=payment_id, returned_cents=cents, status=status
    )


@pytest.fixture
def subscribed(world, customer, prices):
    """Paid subscription and its invoice at Stripe."""
    sold = subscription(prices["growth"], customer_id=customer)
    paid = invoice(
        customer_id=customer,
        subscription_id=sold.id,
        status="paid",
        paid_cents=2900,
        price_id=prices["growth"],
        period_start=sold.period_start,
        period_end=sold.period_end,
        payment_id=f"pi_{uuid.uuid4().hex}",
    )
    world.have(sold, paid)
    return sold, paid


@pytest.fixture
def bought(world, tenant, customer):
    """Paid checkout of a pack with 100 credits."""
    bought = checkout(tenant.account_id, customer_id=customer)
    world.have(bought)
    return bought


async def plan_of(owner, account_id):
    return await owner.fetchval("select plan from accounts where id = $1", account_id)


async def changes_of(desk, payload):
    (entry,) = json.loads((await desk.row(payload))["effects"])
    return [(change["what"], change["outcome"]) for change in entry["changes"]]


async def test_paid_pack_grants_its_credits_once(desk, world, tenant, bought):
    first = world.tell("checkout.session.completed", bought.id)
    again = world.tell("checkout.session.async_payment_succeeded", bought.id)

    assert await desk.news(first, again, first) == ["applied", "applied"]

    assert await desk.balance(tenant.account_id) == 100
    assert await changes_of(desk, first) == [("checkout", "completed")]
    assert await changes_of(desk, again) == [("checkout", "known")]
    assert (await desk.row(first))["account_id"] == tenant.account_id


async def test_unpaid_pack_grants_nothing(desk, world, tenant, bought):
    world.have(changed(bought, is_paid=False))
    payload = world.tell("checkout.session.completed", bought.id)

    await desk.news(payload)

    assert await desk.balance(tenant.account_id) == 0
    assert await changes_of(desk, payload) == [("checkout", "unpaid")]


@pytest.mark.parametrize(
    ("event_type", "fields", "word"),
    [
        ("checkout.session.expired", {"status": "expired", "is_paid": False}, "expired"),
        ("checkout.session.async_payment_failed", {"is_paid": False}, "failed"),
    ],
)
async def test_expired_or_failed_checkout_is_closed(
    desk, world, owner, tenant, bought, event_type, fields, word
):
    checkout_id = uuid.uuid4()
    await owner.execute(
        "insert into checkouts (account_id, id, pack, credits, price_cents, currency, status,"
        " stripe_session_id) values ($1, $2, 'small', 100, 1500, 'usd', 'open', $3)",
        *(tenant.account_id, checkout_id, bought.id),
    )
    world.have(changed(bought, checkout_id=checkout_id, **fields))

    await desk.news(world.tell(event_type, bought.id))

    assert await owner.fetchval("select status from checkouts where id = $1", checkout_id) == word
    assert await desk.balance(tenant.account_id) == 0


async def test_paid_invoice_sets_the_plan_grants_credits_and_is_stored(
    desk, world, owner, tenant, subscribed
):
    _, paid = subscribed
    payload = world.tell("invoice.paid", paid.id)

    await desk.news(payload, world.tell("invoice.payment_succeeded", paid.id))

    assert await plan_of(owner, tenant.account_id) == "growth"
    assert await desk.balance(tenant.account_id) == 250
    assert (
        await owner.fetchval("select paid_cents from invoices where stripe_invoice_id = $1", paid.id) == 2900
    )
    assert await changes_of(desk, payload) == [
        ("subscription", "done"),
        ("invoice", "saved"),
        ("period", "known"),
        ("payment", "noted"),
    ]


async def test_payment_event_after_its_period_grants_that_period(desk, world, owner, tenant, subscribed):
    sold, paid = subscribed
    now = changed(
        sold, period_start=sold.period_end, period_end=sold.period_end + timedelta(days=30), is_paid=False
    )
    world.have(now)

    await desk.news(world.tell("invoice.paid", paid.id))

    starts = await owner.fetch(
        "select period_start, credits_granted from subscription_periods where account_id = $1",
        tenant.account_id,
    )
    assert [tuple(row) for row in starts] == [(STARTED_AT, 250)]
    assert await desk.balance(tenant.account_id) == 250


async def test_unpaid_invoice_is_stored_and_grants_nothing(desk, world, owner, tenant, subscribed):
    sold, paid = subscribed
    world.have(changed(sold, status="past_due", is_paid=False), changed(paid, status="open", paid_cents=0))

    await desk.news(world.tell("invoice.payment_failed", paid.id))

    assert await desk.balance(tenant.account_id) == 0
    assert await plan_of(owner, tenant.account_id) == "growth"  # while Stripe retries the payment
    assert await owner.fetchval("select status from invoices where stripe_invoice_id = $1", paid.id) == "open"


async def test_cancelled_subscription_returns_the_account_to_the_free_plan(
    desk, world, owner, tenant, subscribed
):
    sold, paid = subscribed
    await desk.news(world.tell("invoice.paid", paid.id))
    world.have(changed(sold, status="canceled"))

    await desk.news(world.tell("customer.subscription.deleted", sold.id))

    assert await plan_of(owner, tenant.account_id) == "free"


@pytest.mark.parametrize("word", ["created", "updated", "released", "canceled", "completed", "aborted"])
async def test_schedule_event_sets_the_next_plan(desk, world, owner, subscribed, prices, word):
    sold, _ = subscribed
    await desk.news(world.tell("customer.subscription.created", sold.id))
    world.have(changed(sold, next_price_id=prices["pro"], schedule_id="sub_sched_1"))
    field = "released_subscription" if word == "released" else "subscription"
    subject = {"subscription": None, field: sold.id}

    await desk.news(world.tell(f"subscription_schedule.{word}", "sub_sched_1", subject=subject))

    assert await owner.fetchval(NEXT_PLAN, sold.id) == "pro"


async def test_schedule_event_without_a_subscription_is_ignored(desk, world):
    payload = world.tell("subscription_schedule.created", "sub_sched_1", subject={"subscription": None})

    assert await desk.news(payload) == ["ignored"]
    assert await changes_of(desk, payload) == [("event", "no_subscription")]
    assert world.asked == 0


@pytest.mark.parametrize("event_type", ["invoice.paid", "checkout.session.completed"])
async def test_subscription_read_after_another_object_has_its_own_time(
    desk, world, owner, tenant, subscribed, prices, event_type
):
    """A read of the subscription between the two reads of one event has older content and an older time."""
    sold, paid = subscribed
    bought = checkout(tenant.account_id, customer_id=sold.customer_id, subscription_id=sold.id)
    world.have(bought)
    book = desk.consumption.book

    async def read_between(found):
        seen_at = await book.now()
        await book.apply_subscription(tenant.account_id, sold, seen_at)
        world.have(changed(sold, price_id=prices["pro"]))
        return found

    world.after_read = {found.id: read_between for found in (paid, bought)}
    await desk.news(world.tell(event_type, paid.id if event_type == "invoice.paid" else bought.id))

    assert await plan_of(owner, tenant.account_id) == "pro"


async def test_upgrade_grants_the_difference_and_its_refund_removes_it(
    desk, world, tenant, subscribed, prices
):
    sold, paid = subscribed
    await desk.news(world.tell("invoice.paid", paid.id))
    upgraded = changed(sold, price_id=prices["pro"])
    bill = invoice(
        customer_id=sold.customer_id,
        subscription_id=sold.id,
        status="paid",
        billing_reason="subscription_update",
        paid_cents=7000,
        price_id=prices["pro"],
        created_at=sold.period_start + timedelta(days=1),
        payment_id=f"pi_{uuid.uuid4().hex}",
    )
    world.have(upgraded, bill)

    await desk.news(world.tell("customer.subscription.updated", sold.id), world.tell("invoice.paid", bill.id))

    assert await desk.balance(tenant.account_id) == 1500

    world.refunds["ch_1"] = [returned(bill.payment_id, 7000)]
    await desk.news(world.tell("charge.refunded", "ch_1"))

    assert await desk.balance(tenant.account_id) == 250


async def test_refund_removes_its_share_once_and_a_failed_refund_restores_it(desk, world, tenant, bought):
    await desk.news(world.tell("checkout.session.completed", bought.id))
    refund = returned(bought.payment_id, 750)
    world.refunds["ch_1"] = [refund]
    by_refund = {"subject": {"charge": "ch_1"}}

    await desk.news(
        world.tell("charge.refunded", "ch_1"), world.tell("refund.created", refund.id, **by_refund)
    )

    assert await desk.balance(tenant.account_id) == 50

    world.refunds["ch_1"] = [changed(refund, status="failed")]
    await desk.news(
        world.tell("refund.failed", refund.id, **by_refund),
        world.tell("charge.refund.updated", refund.id, **by_refund),
    )

    assert await desk.balance(tenant.account_id) == 100


async def test_dispute_removes_the_credits_and_a_won_dispute_restores_them(desk, world, tenant, bought):
    await desk.news(world.tell("checkout.session.completed", bought.id))
    dispute = returned(bought.payment_id, 1500, "needs_response", "dp")
    world.have(dispute)

    await desk.news(world.tell("charge.dispute.created", dispute.id))

    assert await desk.balance(tenant.account_id) == 0

    world.have(changed(dispute, status="won"))
    await desk.news(world.tell("charge.dispute.closed", dispute.id))

    assert await desk.balance(tenant.account_id) == 100


@pytest.mark.parametrize("kind", ["refund", "dispute"])
async def test_run_cancelled_after_a_refund_of_its_credits_returns_none(
    desk, world, owner, tenant, bought, kind
):
    await desk.news(world.tell("checkout.session.completed", bought.id))
    run_id = uuid.uuid4()
    await owner.execute(
        "select runs.start($1, $2, 'x', '{}', 100, 'analysis', 'nobody_listens')", tenant.account_id, run_id
    )
    if kind == "refund":
        world.refunds["ch_1"] = [returned(bought.payment_id, 1500)]
        await desk.news(world.tell("charge.refunded", "ch_1"))
    else:
        dispute = returned(bought.payment_id, 1500, "needs_response", "dp")
        world.have(dispute)
        await desk.news(world.tell("charge.dispute.created", dispute.id))

    await owner.execute("select runs.request_cancel($1, $2)", tenant.account_id, run_id)

    assert await desk.balance(tenant.account_id) == 0
    account = "select credits_held from credit_accounts where account_id = $1"
    assert await owner.fetchval(account, tenant.account_id) == 0


async def test_inquiry_removes_no_credits(desk, world, tenant, bought):
    await desk.news(world.tell("checkout.session.completed", bought.id))
    inquiry = returned(bought.payment_id, 1500, "warning_needs_response", "dp")
    world.have(inquiry)

    await desk.news(world.tell("charge.dispute.created", inquiry.id))

    assert await desk.balance(tenant.account_id) == 100


async def test_refund_is_parked_until_its_payment_is_known(desk, world, tenant, bought):
    world.refunds["ch_1"] = [returned(bought.payment_id, 1500)]
    early = world.tell("charge.refunded", "ch_1")

    assert await desk.news(early) == ["parked"]

    await desk.news(world.tell("checkout.session.completed", bought.id))
    await desk.time_passes()

    assert await desk.work() == ["applied"]
    assert await desk.balance(tenant.account_id) == 0


async def test_event_is_parked_until_its_customer_is_known(desk, world, owner, tenant, prices):
    sold = subscription(prices["growth"], customer_id=f"cus_{uuid.uuid4().hex}")
    world.have(sold)
    payload = world.tell("customer.subscription.created", sold.id)

    assert await desk.news(payload) == ["parked"]
    assert (await desk.row(payload))["last_error"] == "awaits_another_event"

    await owner.execute("insert into billing_customers values ($1, $2)", tenant.account_id, sold.customer_id)
    await desk.time_passes()

    assert await desk.work() == ["applied"]
    assert await desk.balance(tenant.account_id) == 250


async def test_event_with_an_unknown_price_is_parked(desk, world, customer):
    sold = subscription(f"price_{uuid.uuid4().hex}", customer_id=customer)
    world.have(sold)
    payload = world.tell("customer.subscription.created", sold.id)

    assert await desk.news(payload) == ["parked"]
    assert (await desk.row(payload))["last_error"] == "price_unknown"


async def test_event_parked_for_three_days_is_dead_lettered(desk, world, owner):
    payload = world.tell("charge.refunded", "ch_1")
    world.refunds["ch_1"] = [returned("pi_of_somebody_else", 100)]
    await desk.take(payload)
    await owner.execute("update webhook_events set received_at = received_at - interval '3 days'")

    assert await desk.work() == ["dead"]


async def test_event_of_a_second_subscription_is_parked(desk, world, subscribed, prices, customer):
    await desk.news(world.tell("customer.subscription.created", subscribed[0].id))
    second = subscription(prices["pro"], customer_id=customer)
    world.have(second)

    assert await desk.news(world.tell("customer.subscription.created", second.id)) == ["parked"]


async def test_events_of_an_ended_surplus_subscription_change_no_credits(
    desk, world, tenant, subscribed, prices, customer
):
    await desk.news(world.tell("customer.subscription.created", subscribed[0].id))
    second = subscription(prices["pro"], customer_id=customer, status="canceled", surplus="ended")
    paid = changed(subscribed[1], id="in_second", subscription_id=second.id, payment_id="pi_second")
    world.have(second, paid)
    world.refunds["ch_2"] = [changed(returned("pi_second", 2900), is_surplus=True)]
    ended = world.tell("customer.subscription.deleted", second.id)
    billed = world.tell("invoice.paid", paid.id)
    given_back = world.tell("charge.refunded", "ch_2")

    assert await desk.news(ended, billed, given_back) == ["applied"] * 3

    assert await changes_of(desk, ended) == [("subscription", "surplus")]
    assert await changes_of(desk, billed) == [("subscription", "surplus"), ("invoice", "saved")]
    assert await changes_of(desk, given_back) == [("refund", "surplus")]
    assert await desk.balance(tenant.account_id) == 250


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"type": "customer.created"}, "type_unknown"),
        ({"type": "some.thing_new.v2"}, "type_unknown"),
        ({"livemode": True}, "other_mode"),
        ({"account": "acct_1"}, "other_stripe_account"),
        ({}, "gone_at_stripe"),
    ],
)
async def test_irrelevant_event_is_stored_and_ignored(desk, world, fields, reason):
    payload = event_of("invoice.paid", "in_unknown", **fields)

    assert await desk.news(payload) == ["ignored"]
    assert await changes_of(desk, payload) == [("event", reason)]
    assert world.asked == (1 if reason == "gone_at_stripe" else 0)


async def test_event_of_a_deleted_account_is_ignored(desk, world, prices):
    sold = subscription(prices["growth"], customer_id="cus_gone", account_id=uuid.uuid4())
    world.have(sold)
    payload = world.tell("customer.subscription.updated", sold.id)

    assert await desk.news(payload) == ["ignored"]
    assert await changes_of(desk, payload) == [("account", "gone")]


async def test_unknown_object_shape_is_retried_without_changes(desk, world, owner, tenant):
    world.things["sub_odd"] = StripeShapeUnknown(kind="subscription", field="current_period_start")
    payload = world.tell("customer.subscription.updated", "sub_odd")

    assert await desk.news(payload) == ["pending"]
    assert (await desk.row(payload))["last_error"] == "stripe_shape_unknown"
    assert await plan_of(owner, tenant.account_id) == "free"
