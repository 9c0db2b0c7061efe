"""Jobs that reconcile subscriptions and invoices with Stripe."""

import uuid

import pytest

from infrastructure.database.billing.subscriptions import PostgresSubscriptionRepository
from tests.conftest import make_tenant
from tests.fakes.stripe import DAY, PRICES, FakeStripe, now
from tests.support.cron_jobs import job_handlers

KNOW_PRICES = """
insert into billing_prices (stripe_price_id, plan, price_cents, currency)
values ('price_growth', 'growth', 2900, 'usd'), ('price_pro', 'pro', 9900, 'usd') on conflict do nothing
"""
STATE = """
select a.plan, c.credits_available from accounts as a join credit_accounts as c on c.account_id = a.id
where a.id = $1
"""
CLEAN = """
delete from subscriptions where clock = 'stripe';
update subscriptions set status = 'active', ended_at = null,
    period_start = now(), period_end = now() + interval '1 month';
"""


@pytest.fixture
async def stripe(cron_owner):
    await cron_owner.execute(KNOW_PRICES)
    await cron_owner.execute(CLEAN)
    return FakeStripe()


@pytest.fixture
def run_job(cron_database, stripe):
    async def run(name, *, is_dry_run=False):
        report = await job_handlers(cron_database, stripe, stripe)[name](is_dry_run=is_dry_run)
        return report.counts, {(finding.kind, finding.subject) for finding in report.findings}

    return run


@pytest.fixture
def book(cron_database):
    return PostgresSubscriptionRepository(cron_database.admin("tests"))


@pytest.fixture
def subscriber(cron_owner, stripe, book):
    """Factory of accounts with a paid subscription that is in sync with Stripe."""

    async def make(**fields):
        account_id = (await make_tenant(cron_owner)).account_id
        made = stripe.subscribe(account_id, **fields)
        await book.apply_subscription(account_id, made, await book.now())
        return account_id, made

    return make


async def state(cron_owner, account_id):
    return tuple(await cron_owner.fetchrow(STATE, account_id))


async def test_sweep_fetches_periods_whose_events_did_not_arrive(cron_owner, stripe, subscriber, run_job):
    began = now() - 31 * DAY
    renewed_id, renewed = await subscriber(began=began)
    stripe.change(renewed.id, period_start=renewed.period_end, period_end=renewed.period_end + 30 * DAY)
    _, unpaid = await subscriber(began=began)
    stripe.change(unpaid.id, status="past_due", is_paid=False)
    _, strange = await subscriber(began=began)
    stripe.change(strange.id, price_id="price_by_hand")
    _, unknown = await subscriber(began=began)
    del stripe.by_id[unknown.id]

    counts, findings = await run_job("renewal-sweep")
    again, _ = await run_job("renewal-sweep")

    assert {name: counts[name] for name in ("processed", "succeeded", "failed", "credits")} == {
        "processed": 4,
        "succeeded": 2,
        "failed": 2,
        "credits": 250,
    }
    assert findings == {("price_unknown", strange.id), ("unknown_at_stripe", unknown.id)}
    assert await state(cron_owner, renewed_id) == ("growth", 500)
    assert again.get("credits", 0) == 0


async def test_sync_applies_the_state_at_stripe(cron_owner, stripe, subscriber, run_job):
    grown_id, grown = await subscriber()
    stripe.change(grown.id, price_id=PRICES["pro"])
    ended_id, ended = await subscriber()
    stripe.change(ended.id, status="canceled")
    same_id, _ = await subscriber()
    new_id = (await make_tenant(cron_owner)).account_id
    new = stripe.subscribe(new_id)
    foreseen = await run_job("subscription-sync", is_dry_run=True)
    assert await state(cron_owner, new_id) == ("free", 0)

    counts, findings = await run_job("subscription-sync")
    again, nothing = await run_job("subscription-sync")

    assert findings == {("was_different", one.id) for one in (grown, ended, new)}
    assert foreseen == (counts, findings)
    assert (counts["subscriptions"], counts["changed"], counts["credits"]) == (4, 3, 1_250 + 250)
    assert await state(cron_owner, grown_id) == ("pro", 1_500)
    assert await state(cron_owner, ended_id) == ("free", 250)
    assert await state(cron_owner, same_id) == await state(cron_owner, new_id) == ("growth", 250)
    assert (again, nothing) == ({"subscriptions": 4}, set())


async def test_subscription_missing_from_the_list_is_fetched_by_id(stripe, subscriber, run_job):
    _, unlisted = await subscriber()
    _, unknown = await subscriber()
    stripe.unlisted.add(unlisted.id)
    stripe.change(unlisted.id, status="unpaid", is_paid=False)
    del stripe.by_id[unknown.id]

    _, findings = await run_job("subscription-sync")

    assert findings == {("was_different", unlisted.id), ("unknown_at_stripe", unknown.id)}


async def test_subscription_of_a_deleted_account_is_cancelled_once(cron_owner, stripe, subscriber, run_job):
    account_id, theirs = await subscriber()
    stranger = stripe.subscribe(uuid.uuid4())
    await cron_owner.execute("update accounts set deleted_at = now() where id = $1", account_id)
    foreseen = await run_job("subscription-sync", is_dry_run=True)
    assert stripe.cancelled == []

    _, findings = await run_job("subscription-sync")
    await run_job("subscription-sync")

    assert foreseen[1] < findings
    assert findings >= {("account_deleted", theirs.id), ("account_unknown", stranger.id)}
    assert stripe.cancelled == [theirs.id]


@pytest.fixture
async def payer(stripe, subscriber):
    """Account with two paid subscriptions: its id, both subscriptions and the second one's paid invoice."""
    account_id, first = await subscriber()
    second = stripe.subscribe(account_id, plan="pro", customer_id=first.customer_id)
    return account_id, first, second, stripe.invoice(second, paid_cents=9900)


async def test_second_subscription_is_cancelled_and_refunded_once(cron_owner, stripe, payer, run_job):
    account_id, first, second, paid = payer
    stripe.invoice(second, status="open", paid_cents=0, payment_id=None)
    foreseen = await run_job("subscription-sync", is_dry_run=True)
    assert (stripe.cancelled, stripe.refunded) == ([], [])

    counts, findings = await run_job("subscription-sync")
    again, nothing = await run_job("subscription-sync")
    await run_job("invoice-reconciliation")

    assert foreseen[1] == findings == {("second_subscription", second.id)}
    assert (counts["ended"], counts["cents_returned"]) == (1, 9900)
    assert stripe.cancelled == [second.id]
    assert stripe.refunded == [paid.payment_id]
    assert (again, nothing) == ({"subscriptions": 2}, set())
    assert stripe.by_id[first.id].status == "active"
    assert await state(cron_owner, account_id) == ("growth", 250)


async def test_new_subscription_is_kept_when_the_first_has_ended_at_stripe(
    cron_owner, stripe, payer, run_job
):
    """Stripe lists the newest subscription first."""
    account_id, first, second, _ = payer
    stripe.change(first.id, status="canceled")
    stripe.by_id = {second.id: second, first.id: stripe.by_id[first.id]}

    _, findings = await run_job("subscription-sync")
    await run_job("subscription-sync")

    assert ("second_subscription", second.id) in findings
    assert (stripe.cancelled, stripe.refunded) == ([], [])
    assert await state(cron_owner, account_id) == ("pro", 250 + 1_500)


async def test_refused_refund_does_not_block_other_subscriptions(stripe, payer, subscriber, run_job):
    _, _, second, paid = payer
    _, behind = await subscriber()
    stripe.change(behind.id, status="canceled")
    stripe.refused.add(paid.payment_id)

    _, findings = await run_job("subscription-sync")
    _, again = await run_job("subscription-sync")
    stripe.refused.clear()
    counts, _ = await run_job("subscription-sync")

    assert findings >= {
        ("second_subscription", second.id),
        ("payments_refused", second.id),
        ("was_different", behind.id),
    }
    assert again == {("second_subscription", second.id), ("payments_refused", second.id)}
    assert (counts["cents_returned"], stripe.refunded) == (9900, [paid.payment_id])


async def test_pending_refund_is_completed_by_the_next_sync(stripe, payer, run_job):
    _, _, second, paid = payer
    stripe.change(second.id, surplus="ending", status="canceled")

    counts, _ = await run_job("subscription-sync")

    assert stripe.refunded == [paid.payment_id]
    assert counts["cents_returned"] == 9900
    assert stripe.by_id[second.id].surplus == "ended"


async def test_paid_invoice_without_an_event_grants_its_credits(cron_owner, stripe, subscriber, run_job):
    account_id, subscription = await subscriber()
    stored = stripe.invoice(subscription)
    lost = stripe.invoice(
        subscription,
        created_at=now() - 20 * DAY,
        period_start=subscription.period_start - 30 * DAY,
        period_end=subscription.period_start,
    )
    upgrade = stripe.invoice(
        subscription, billing_reason="subscription_update", period_start=now(), price_id=PRICES["pro"]
    )
    owed = stripe.invoice(subscription, status="open", paid_cents=0, payment_id=None)
    strange = stripe.invoice(stripe.subscribe(None))
    old = stripe.invoice(subscription, created_at=now() - 36 * DAY)
    _, foreseen = await run_job("invoice-reconciliation", is_dry_run=True)

    counts, findings = await run_job("invoice-reconciliation")
    again, nothing = await run_job("invoice-reconciliation")

    saved = {("was_different", one.id) for one in (stored, lost, upgrade, owed)}
    missing = {("account_unknown", strange.id)}
    assert findings == saved | missing | {("paid_without_credits", lost.id)}
    assert old.id not in str(findings)
    assert foreseen == nothing == missing
    assert (counts["invoices_saved"], counts["periods_granted"], counts["credits"]) == (4, 1, 250)
    assert await state(cron_owner, account_id) == ("growth", 500)
    assert again == {"invoices": 5, "findings": 1}
    returned = await cron_owner.fetchrow(
        "select * from billing.reverse_payment($1, 're_' || $1, 2900)", lost.payment_id
    )
    assert (returned["outcome"], returned["credits_reclaimed"]) == ("done", 250)


@pytest.mark.parametrize("name", ["renewal-sweep", "subscription-sync", "invoice-reconciliation"])
async def test_jobs_without_stripe_have_no_findings(cron_database, stripe, name):
    del stripe
    report = await job_handlers(cron_database)[name](is_dry_run=False)

    assert report.findings == ()
