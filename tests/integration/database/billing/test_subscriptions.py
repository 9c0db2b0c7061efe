"""Applying subscription snapshots in any order and repeatedly."""

from datetime import timedelta

import pytest

from features.billing.domain.errors import PriceUnknown
from features.billing.domain.results import renewal_reference
from tests.support.stripe_snapshots import changed, subscription


async def balance_of(owner, account_id):
    return await owner.fetchval(
        "select credits_available from credit_accounts where account_id = $1", account_id
    )


async def state_of(owner, account_id):
    """The account's plan in force, and clock, plan and status of its current subscription."""
    return tuple(
        await owner.fetchrow(
            "select a.plan, s.clock, s.plan, s.status from accounts as a join subscriptions as s"
            " on s.account_id = a.id and s.ended_at is null where a.id = $1",
            account_id,
        )
    )


async def references_of(owner, account_id):
    rows = await owner.fetch(
        "select reference from credit_entries where account_id = $1 and kind = 'grant' order by position",
        account_id,
    )
    return [row["reference"] for row in rows]


async def test_paid_subscription_activates_its_plan_and_grants_credits_once(
    repository, owner, tenant, prices
):
    snapshot = subscription(prices["growth"])

    first = await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())
    second = await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())

    assert (first.outcome, first.plan_before, first.plan_after) == ("done", "free", "growth")
    assert (first.credits_granted, second.credits_granted) == (250, 0)
    assert await state_of(owner, tenant.account_id) == ("growth", "stripe", "growth", "active")
    assert await balance_of(owner, tenant.account_id) == 250
    assert renewal_reference(first.subscription_id, snapshot.period_start) in await references_of(
        owner, tenant.account_id
    )


async def test_unpaid_period_grants_its_credits_only_after_payment(repository, owner, tenant, prices):
    snapshot = subscription(prices["growth"], is_paid=False)

    await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())
    unpaid = await balance_of(owner, tenant.account_id)
    await repository.apply_subscription(
        tenant.account_id, changed(snapshot, is_paid=True), await repository.now()
    )

    assert (unpaid, await balance_of(owner, tenant.account_id)) == (0, 250)


async def test_upgrade_within_the_period_grants_the_difference_once(repository, owner, tenant, prices):
    snapshot = subscription(prices["growth"])
    larger = changed(snapshot, price_id=prices["pro"])

    applied = await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())
    upgraded = await repository.apply_subscription(tenant.account_id, larger, await repository.now())
    again = await repository.apply_subscription(tenant.account_id, larger, await repository.now())

    assert (upgraded.credits_granted, again.credits_granted) == (1250, 0)
    assert await balance_of(owner, tenant.account_id) == 1500
    renewal = renewal_reference(applied.subscription_id, snapshot.period_start)
    upgrade = renewal.replace("renewal:", "upgrade:") + ":pro"
    assert upgrade in await references_of(owner, tenant.account_id)


async def test_downgrade_and_upgrade_within_a_period_grant_nothing_more(repository, owner, tenant, prices):
    snapshot = subscription(prices["pro"])

    for plan in ("pro", "growth", "pro", "growth"):
        await repository.apply_subscription(
            tenant.account_id, changed(snapshot, price_id=prices[plan]), await repository.now()
        )

    assert await balance_of(owner, tenant.account_id) == 1500
    assert await state_of(owner, tenant.account_id) == ("growth", "stripe", "growth", "active")


async def test_older_snapshot_changes_nothing(repository, owner, tenant, prices):
    before = await repository.now()
    snapshot = subscription(prices["pro"])
    await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())

    late = await repository.apply_subscription(
        tenant.account_id, changed(snapshot, price_id=prices["growth"], status="canceled"), before
    )

    assert late.outcome == "stale"
    assert await state_of(owner, tenant.account_id) == ("pro", "stripe", "pro", "active")


async def test_incomplete_subscription_is_not_stored(repository, owner, tenant, prices):
    applied = await repository.apply_subscription(
        tenant.account_id,
        subscription(prices["pro"], status="incomplete", is_paid=False),
        await repository.now(),
    )

    assert applied.outcome == "incomplete"
    assert await state_of(owner, tenant.account_id) == ("free", "internal", "free", "active")


async def test_second_subscription_is_reported_and_changes_nothing(repository, owner, tenant, prices):
    await repository.apply_subscription(
        tenant.account_id, subscription(prices["growth"]), await repository.now()
    )

    second = await repository.apply_subscription(
        tenant.account_id, subscription(prices["pro"]), await repository.now()
    )

    assert (second.outcome, second.credits_granted) == ("second_subscription", 0)
    assert await state_of(owner, tenant.account_id) == ("growth", "stripe", "growth", "active")


@pytest.mark.parametrize(
    ("status", "plan"),
    [("past_due", "growth"), ("trialing", "growth"), ("paused", "growth"), ("unpaid", "free")],
)
async def test_the_plan_in_force_follows_the_status(repository, owner, tenant, prices, status, plan):
    snapshot = subscription(prices["growth"])
    await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())

    await repository.apply_subscription(
        tenant.account_id, changed(snapshot, status=status), await repository.now()
    )

    assert await state_of(owner, tenant.account_id) == (plan, "stripe", "growth", status)


async def test_ended_subscription_stays_ended_and_the_own_clock_continues(repository, owner, tenant, prices):
    snapshot = subscription(prices["growth"])
    await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())

    ended = await repository.apply_subscription(
        tenant.account_id, changed(snapshot, status="canceled"), await repository.now()
    )
    back = await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())

    assert (ended.plan_before, ended.plan_after, ended.status_after) == ("growth", "free", "ended")
    assert back.outcome == "stale"
    assert await state_of(owner, tenant.account_id) == ("free", "internal", "free", "active")


async def test_own_clock_resumes_in_the_current_period_without_granting_it(repository, owner, tenant, prices):
    await owner.execute(
        "update subscriptions set anchor_at = anchor_at - interval '100 days',"
        " period_start = period_start - interval '100 days', period_end = period_end - interval '100 days'"
        " where account_id = $1",
        tenant.account_id,
    )
    snapshot = subscription(prices["growth"], is_paid=False)
    await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())

    await repository.apply_subscription(
        tenant.account_id, changed(snapshot, status="canceled"), await repository.now()
    )

    assert await owner.fetchval(
        "select period_index = 3 and period_start <= now() and now() < period_end"
        " from subscriptions where account_id = $1 and clock = 'internal'",
        tenant.account_id,
    )
    assert await balance_of(owner, tenant.account_id) == 0


async def test_new_subscription_after_an_ended_one_grants_credits(repository, owner, tenant, prices):
    first, second = subscription(prices["growth"]), subscription(prices["growth"])
    await repository.apply_subscription(tenant.account_id, first, await repository.now())
    await repository.apply_subscription(
        tenant.account_id, changed(first, status="canceled"), await repository.now()
    )

    applied = await repository.apply_subscription(tenant.account_id, second, await repository.now())

    assert (applied.outcome, applied.credits_granted) == ("done", 250)
    assert await state_of(owner, tenant.account_id) == ("growth", "stripe", "growth", "active")


async def test_unknown_price_is_rejected(repository, tenant):
    with pytest.raises(PriceUnknown, match="price_strange"):
        await repository.apply_subscription(
            tenant.account_id, subscription("price_strange"), await repository.now()
        )


async def test_planned_downgrade_is_stored(repository, owner, tenant, prices):
    snapshot = subscription(prices["pro"], next_price_id=prices["growth"])

    await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())

    assert (
        await owner.fetchval(
            "select next_plan from subscriptions where stripe_subscription_id = $1", snapshot.id
        )
        == "growth"
    )


async def test_late_period_still_grants_usable_credits(repository, owner, tenant, prices):
    snapshot = subscription(prices["growth"])
    applied = await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())

    granted = await repository.grant_period(
        tenant.account_id,
        applied.subscription_id,
        "growth",
        period_start=snapshot.period_start - timedelta(days=30),
        period_end=snapshot.period_start,
    )

    assert granted == 250
    assert await balance_of(owner, tenant.account_id) == 500


async def test_account_is_found_by_customer_and_by_subscription(repository, owner, tenant, prices):
    snapshot = subscription(prices["growth"])
    await repository.apply_subscription(tenant.account_id, snapshot, await repository.now())
    customer = (tenant.account_id, f"cus_{snapshot.id}")
    await owner.execute("insert into billing_customers values ($1, $2)", *customer)

    assert await repository.account_of(subscription_id=snapshot.id) == tenant.account_id
    assert await repository.account_of(customer_id=customer[1]) == tenant.account_id
    assert await repository.account_of(customer_id="cus_unknown", subscription_id="sub_unknown") is None
