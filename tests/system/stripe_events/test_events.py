"""Effects of each Stripe event type, independent of order and repetition."""

import json
import uuid
from datetime import timedelta

import pytest

from features.billing.domain.errors import StripeShapeUnknown
from features.billing.domain.stripe_snapshots import ReversalSnapshot
from tests.support.stripe_snapshots import (
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


async def changes_of(inbox, payload):
    (entry,) = json.loads((await inbox.row(payload))["effects"])
    return [(change["what"], change["outcome"]) for change in entry["changes"]]


async def test_paid_pack_grants_its_credits_once(inbox, world, tenant, bought):
    first = world.emit("checkout.session.completed", bought.id)
    again = world.emit("checkout.session.async_payment_succeeded", bought.id)

    assert await inbox.process_all(first, again, first) == ["applied", "applied"]

    assert await inbox.balance(tenant.account_id) == 100
    assert await changes_of(inbox, first) == [("checkout", "completed")]
    assert await changes_of(inbox, again) == [("checkout", "known")]
    assert (await inbox.row(first))["account_id"] == tenant.account_id


async def test_unpaid_pack_grants_nothing(inbox, world, tenant, bought):
    world.have(changed(bought, is_paid=False))
    payload = world.emit("checkout.session.completed", bought.id)

    await inbox.process_all(payload)

    assert await inbox.balance(tenant.account_id) == 0
    assert await changes_of(inbox, payload) == [("checkout", "unpaid")]


@pytest.mark.parametrize(
    ("event_type", "fields", "word"),
    [
        ("checkout.session.expired", {"status": "expired", "is_paid": False}, "expired"),
        ("checkout.session.async_payment_failed", {"is_paid": False}, "failed"),
    ],
)
async def test_expired_or_failed_checkout_is_closed(
    inbox, world, owner, tenant, bought, event_type, fields, word
):
    checkout_id = uuid.uuid4()
    await owner.execute(
        "insert into checkouts (account_id, id, pack, credits, price_cents, currency, status,"
        " stripe_session_id) values ($1, $2, 'small', 100, 1500, 'usd', 'open', $3)",
        *(tenant.account_id, checkout_id, bought.id),
    )
    world.have(changed(bought, checkout_id=checkout_id, **fields))

    await inbox.process_all(world.emit(event_type, bought.id))

    assert await owner.fetchval("select status from checkouts where id = $1", checkout_id) == word
    assert await inbox.balance(tenant.account_id) == 0


async def test_paid_invoice_sets_the_plan_grants_credits_and_is_stored(
    inbox, world, owner, tenant, subscribed
):
    _, paid = subscribed
    payload = world.emit("invoice.paid", paid.id)

    await inbox.process_all(payload, world.emit("invoice.payment_succeeded", paid.id))

    assert await plan_of(owner, tenant.account_id) == "growth"
    assert await inbox.balance(tenant.account_id) == 250
    assert (
        await owner.fetchval("select paid_cents from invoices where stripe_invoice_id = $1", paid.id) == 2900
    )
    assert await changes_of(inbox, payload) == [
        ("subscription", "done"),
        ("invoice", "saved"),
        ("period", "known"),
        ("payment", "noted"),
    ]


async def test_payment_event_after_its_period_grants_that_period(inbox, world, owner, tenant, subscribed):
    sold, paid = subscribed
    now = changed(
        sold, period_start=sold.period_end, period_end=sold.period_end + timedelta(days=30), is_paid=False
    )
    world.have(now)

    await inbox.process_all(world.emit("invoice.paid", paid.id))

    starts = await owner.fetch(
        "select period_start, credits_granted from subscription_periods where account_id = $1",
        tenant.account_id,
    )
    assert [tuple(row) for row in starts] == [(STARTED_AT, 250)]
    assert await inbox.balance(tenant.account_id) == 250


async def test_unpaid_invoice_is_stored_and_grants_nothing(inbox, world, owner, tenant, subscribed):
    sold, paid = subscribed
    world.have(changed(sold, status="past_due", is_paid=False), changed(paid, status="open", paid_cents=0))

    await inbox.process_all(world.emit("invoice.payment_failed", paid.id))

    assert await inbox.balance(tenant.account_id) == 0
    assert await plan_of(owner, tenant.account_id) == "growth"  # while Stripe retries the payment
    assert await owner.fetchval("select status from invoices where stripe_invoice_id = $1", paid.id) == "open"


async def test_cancelled_subscription_returns_the_account_to_the_free_plan(
    inbox, world, owner, tenant, subscribed
):
    sold, paid = subscribed
    await inbox.process_all(world.emit("invoice.paid", paid.id))
    world.have(changed(sold, status="canceled"))

    await inbox.process_all(world.emit("customer.subscription.deleted", sold.id))

    assert await plan_of(owner, tenant.account_id) == "free"


@pytest.mark.parametrize("word", ["created", "updated", "released", "canceled", "completed", "aborted"])
async def test_schedule_event_sets_the_next_plan(inbox, world, owner, subscribed, prices, word):
    sold, _ = subscribed
    await inbox.process_all(world.emit("customer.subscription.created", sold.id))
    world.have(changed(sold, next_price_id=prices["pro"], schedule_id="sub_sched_1"))
    field = "released_subscription" if word == "released" else "subscription"
    subject = {"subscription": None, field: sold.id}

    await inbox.process_all(world.emit(f"subscription_schedule.{word}", "sub_sched_1", subject=subject))

    assert await owner.fetchval(NEXT_PLAN, sold.id) == "pro"


async def test_schedule_event_without_a_subscription_is_ignored(inbox, world):
    payload = world.emit("subscription_schedule.created", "sub_sched_1", subject={"subscription": None})

    assert await inbox.process_all(payload) == ["ignored"]
    assert await changes_of(inbox, payload) == [("event", "no_subscription")]
    assert world.asked == 0


@pytest.mark.parametrize("event_type", ["invoice.paid", "checkout.session.completed"])
async def test_subscription_read_after_another_object_has_its_own_time(
    inbox, world, owner, tenant, subscribed, prices, event_type
):
    """A read of the subscription between the two reads of one event has older content and an older time."""
    sold, paid = subscribed
    bought = checkout(tenant.account_id, customer_id=sold.customer_id, subscription_id=sold.id)
    world.have(bought)
    repository = inbox.processor.repository

    async def read_between(found):
        seen_at = await repository.now()
        await repository.apply_subscription(tenant.account_id, sold, seen_at)
        world.have(changed(sold, price_id=prices["pro"]))
        return found

    world.after_read = {found.id: read_between for found in (paid, bought)}
    await inbox.process_all(world.emit(event_type, paid.id if event_type == "invoice.paid" else bought.id))

    assert await plan_of(owner, tenant.account_id) == "pro"


async def test_upgrade_grants_the_difference_and_its_refund_removes_it(
    inbox, world, tenant, subscribed, prices
):
    sold, paid = subscribed
    await inbox.process_all(world.emit("invoice.paid", paid.id))
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

    await inbox.process_all(
        world.emit("customer.subscription.updated", sold.id), world.emit("invoice.paid", bill.id)
    )

    assert await inbox.balance(tenant.account_id) == 1500

    world.refunds["ch_1"] = [returned(bill.payment_id, 7000)]
    await inbox.process_all(world.emit("charge.refunded", "ch_1"))

    assert await inbox.balance(tenant.account_id) == 250


async def test_refund_removes_its_share_once_and_a_failed_refund_restores_it(inbox, world, tenant, bought):
    await inbox.process_all(world.emit("checkout.session.completed", bought.id))
    refund = returned(bought.payment_id, 750)
    world.refunds["ch_1"] = [refund]
    by_refund = {"subject": {"charge": "ch_1"}}

    await inbox.process_all(
        world.emit("charge.refunded", "ch_1"), world.emit("refund.created", refund.id, **by_refund)
    )

    assert await inbox.balance(tenant.account_id) == 50

    world.refunds["ch_1"] = [changed(refund, status="failed")]
    await inbox.process_all(
        world.emit("refund.failed", refund.id, **by_refund),
        world.emit("charge.refund.updated", refund.id, **by_refund),
    )

    assert await inbox.balance(tenant.account_id) == 100


async def test_dispute_removes_the_credits_and_a_won_dispute_restores_them(inbox, world, tenant, bought):
    await inbox.process_all(world.emit("checkout.session.completed", bought.id))
    dispute = returned(bought.payment_id, 1500, "needs_response", "dp")
    world.have(dispute)

    await inbox.process_all(world.emit("charge.dispute.created", dispute.id))

    assert await inbox.balance(tenant.account_id) == 0

    world.have(changed(dispute, status="won"))
    await inbox.process_all(world.emit("charge.dispute.closed", dispute.id))

    assert await inbox.balance(tenant.account_id) == 100


@pytest.mark.parametrize("kind", ["refund", "dispute"])
async def test_run_cancelled_after_a_refund_of_its_credits_returns_none(
    inbox, world, owner, tenant, bought, kind
):
    await inbox.process_all(world.emit("checkout.session.completed", bought.id))
    run_id = uuid.uuid4()
    await owner.execute(
        "select runs.start($1, $2, 'x', '{}', 100, 'analysis', 'no_worker')", tenant.account_id, run_id
    )
    if kind == "refund":
        world.refunds["ch_1"] = [returned(bought.payment_id, 1500)]
        await inbox.process_all(world.emit("charge.refunded", "ch_1"))
    else:
        dispute = returned(bought.payment_id, 1500, "needs_response", "dp")
        world.have(dispute)
        await inbox.process_all(world.emit("charge.dispute.created", dispute.id))

    await owner.execute("select runs.request_cancel($1, $2)", tenant.account_id, run_id)

    assert await inbox.balance(tenant.account_id) == 0
    account = "select credits_held from credit_accounts where account_id = $1"
    assert await owner.fetchval(account, tenant.account_id) == 0


async def test_inquiry_removes_no_credits(inbox, world, tenant, bought):
    await inbox.process_all(world.emit("checkout.session.completed", bought.id))
    inquiry = returned(bought.payment_id, 1500, "warning_needs_response", "dp")
    world.have(inquiry)

    await inbox.process_all(world.emit("charge.dispute.created", inquiry.id))

    assert await inbox.balance(tenant.account_id) == 100


async def test_refund_is_parked_until_its_payment_is_known(inbox, world, tenant, bought):
    world.refunds["ch_1"] = [returned(bought.payment_id, 1500)]
    early = world.emit("charge.refunded", "ch_1")

    assert await inbox.process_all(early) == ["parked"]

    await inbox.process_all(world.emit("checkout.session.completed", bought.id))
    await inbox.time_passes()

    assert await inbox.work() == ["applied"]
    assert await inbox.balance(tenant.account_id) == 0


async def test_event_is_parked_until_its_customer_is_known(inbox, world, owner, tenant, prices):
    sold = subscription(prices["growth"], customer_id=f"cus_{uuid.uuid4().hex}")
    world.have(sold)
    payload = world.emit("customer.subscription.created", sold.id)

    assert await inbox.process_all(payload) == ["parked"]
    assert (await inbox.row(payload))["last_error"] == "awaits_another_event"

    await owner.execute("insert into billing_customers values ($1, $2)", tenant.account_id, sold.customer_id)
    await inbox.time_passes()

    assert await inbox.work() == ["applied"]
    assert await inbox.balance(tenant.account_id) == 250


async def test_event_with_an_unknown_price_is_parked(inbox, world, customer):
    sold = subscription(f"price_{uuid.uuid4().hex}", customer_id=customer)
    world.have(sold)
    payload = world.emit("customer.subscription.created", sold.id)

    assert await inbox.process_all(payload) == ["parked"]
    assert (await inbox.row(payload))["last_error"] == "price_unknown"


async def test_event_parked_for_three_days_is_dead_lettered(inbox, world, owner):
    payload = world.emit("charge.refunded", "ch_1")
    world.refunds["ch_1"] = [returned("pi_of_another", 100)]
    await inbox.receive(payload)
    await owner.execute("update webhook_events set received_at = received_at - interval '3 days'")

    assert await inbox.work() == ["dead"]


async def test_event_of_a_second_subscription_is_parked(inbox, world, subscribed, prices, customer):
    await inbox.process_all(world.emit("customer.subscription.created", subscribed[0].id))
    second = subscription(prices["pro"], customer_id=customer)
    world.have(second)

    assert await inbox.process_all(world.emit("customer.subscription.created", second.id)) == ["parked"]


async def test_events_of_an_ended_surplus_subscription_change_no_credits(
    inbox, world, tenant, subscribed, prices, customer
):
    await inbox.process_all(world.emit("customer.subscription.created", subscribed[0].id))
    second = subscription(prices["pro"], customer_id=customer, status="canceled", surplus="ended")
    paid = changed(subscribed[1], id="in_second", subscription_id=second.id, payment_id="pi_second")
    world.have(second, paid)
    world.refunds["ch_2"] = [changed(returned("pi_second", 2900), is_surplus=True)]
    ended = world.emit("customer.subscription.deleted", second.id)
    billed = world.emit("invoice.paid", paid.id)
    given_back = world.emit("charge.refunded", "ch_2")

    assert await inbox.process_all(ended, billed, given_back) == ["applied"] * 3

    assert await changes_of(inbox, ended) == [("subscription", "surplus")]
    assert await changes_of(inbox, billed) == [("subscription", "surplus"), ("invoice", "saved")]
    assert await changes_of(inbox, given_back) == [("refund", "surplus")]
    assert await inbox.balance(tenant.account_id) == 250


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
async def test_irrelevant_event_is_stored_and_ignored(inbox, world, fields, reason):
    payload = event_of("invoice.paid", "in_unknown", **fields)

    assert await inbox.process_all(payload) == ["ignored"]
    assert await changes_of(inbox, payload) == [("event", reason)]
    assert world.asked == (1 if reason == "gone_at_stripe" else 0)


async def test_event_of_a_deleted_account_is_ignored(inbox, world, prices):
    sold = subscription(prices["growth"], customer_id="cus_gone", account_id=uuid.uuid4())
    world.have(sold)
    payload = world.emit("customer.subscription.updated", sold.id)

    assert await inbox.process_all(payload) == ["ignored"]
    assert await changes_of(inbox, payload) == [("account", "gone")]


async def test_unknown_object_shape_is_retried_without_changes(inbox, world, owner, tenant):
    world.things["sub_odd"] = StripeShapeUnknown(kind="subscription", field="current_period_start")
    payload = world.emit("customer.subscription.updated", "sub_odd")

    assert await inbox.process_all(payload) == ["pending"]
    assert (await inbox.row(payload))["last_error"] == "stripe_response_invalid"
    assert await plan_of(owner, tenant.account_id) == "free"
