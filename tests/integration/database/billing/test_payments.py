"""Purchases, refunds, disputes and invoices in the database."""

import asyncio
import random
import uuid
from datetime import timedelta
from fractions import Fraction

import pytest

from features.billing.domain.errors import CheckoutNotOurs
from features.billing.domain.stripe_snapshots import ReversalSnapshot
from tests.support.stripe_snapshots import STARTED_AT, changed, checkout, invoice


def going_back(bought, cents, **fields):
    return ReversalSnapshot(
        **{
            "id": f"re_{uuid.uuid4().hex}",
            "payment_id": bought.payment_id,
            "returned_cents": cents,
            "status": "succeeded",
            **fields,
        }
    )


async def balance_of(owner, account_id):
    return await owner.fetchval(
        "select credits_available from credit_accounts where account_id = $1", account_id
    )


async def spend(owner, account_id, amount):
    reference = uuid.uuid4().hex
    held = "select outcome from ledger.place_hold($1, $2, $3, 'admin_charge', null, null)"
    assert await owner.fetchval(held, account_id, amount, reference) == "done"
    await owner.fetchval("select ledger.settle_hold($1, $2, $3)", account_id, reference, amount)


async def hold(owner, account_id, amount, reference="held"):
    placed = "select outcome from ledger.place_hold($1, $2, $3, 'analysis')"
    assert await owner.fetchval(placed, account_id, amount, reference) == "done"


async def findings_of(owner, account_id):
    rows = await owner.fetch("select * from ledger.audit()")
    return [row for row in rows if account_id in row.values()]


@pytest.fixture
async def bought(repository, tenant):
    """A paid checkout of 100 credits for 15 dollars."""
    paid = checkout(tenant.account_id)
    await repository.complete_purchase(paid)
    return paid


async def test_purchase_is_granted_once(repository, owner, tenant):
    paid = checkout(tenant.account_id)

    granted = await asyncio.gather(*(repository.complete_purchase(paid) for _ in range(5)))

    assert sorted(granted) == [0, 0, 0, 0, 100]
    assert await balance_of(owner, tenant.account_id) == 100


async def test_purchase_without_an_account_is_rejected(repository, tenant):
    with pytest.raises(CheckoutNotOurs):
        await repository.complete_purchase(changed(checkout(tenant.account_id), account_id=None))


async def test_refund_reclaims_its_share_once(repository, owner, tenant, bought):
    back = going_back(bought, 500)

    first, second = [await repository.reverse_payment(back) for _ in range(2)]

    assert (first.outcome, first.account_id, first.credits_reclaimed) == ("done", tenant.account_id, 33)
    assert (second.outcome, second.credits_reclaimed) == ("repeated", 33)
    assert await balance_of(owner, tenant.account_id) == 67


async def test_concurrent_refund_events_reclaim_the_share_once(repository, owner, tenant, bought):
    back = going_back(bought, 750)

    outcomes = [
        one.outcome for one in await asyncio.gather(*(repository.reverse_payment(back) for _ in range(5)))
    ]

    assert sorted(outcomes) == ["done", *["repeated"] * 4]
    assert await balance_of(owner, tenant.account_id) == 50


@pytest.mark.parametrize("seed", range(5))
async def test_many_small_refunds_reclaim_exactly_the_share_of_their_sum(
    repository, owner, tenant, bought, seed
):
    cents_left, returned = bought.paid_cents, 0
    dice = random.Random(seed)
    while cents_left:
        cents = min(cents_left, dice.randint(1, 200))
        await repository.reverse_payment(going_back(bought, cents))
        cents_left, returned = cents_left - cents, returned + cents
        share = int(Fraction(100) * returned / bought.paid_cents)
        assert await balance_of(owner, tenant.account_id) == 100 - share

    assert await balance_of(owner, tenant.account_id) == 0
    assert await findings_of(owner, tenant.account_id) == []


async def test_refund_of_spent_credits_leaves_a_shortfall(repository, owner, tenant, bought):
    await spend(owner, tenant.account_id, 80)

    first = await repository.reverse_payment(going_back(bought, 750))
    second = await repository.reverse_payment(going_back(bought, 750))

    assert (first.credits_reclaimed, first.credits_short) == (20, 30)
    assert (second.credits_reclaimed, second.credits_short) == (0, 50)
    assert await balance_of(owner, tenant.account_id) == 0
    assert await findings_of(owner, tenant.account_id) == []


RELEASE = ("select ledger.release_hold($1, 'held')",)
SETTLE = ("select ledger.settle_hold($1, 'held', 30)",)
SETTLE_AND_REFUND = (
    "select ledger.settle_hold($1, 'held', 100)",
    "select ledger.refund_charge($1, 'held', 60, 'first')",
    "select ledger.refund_charge($1, 'held', 40, 'second')",
)


@pytest.mark.parametrize("statements", [RELEASE, SETTLE, SETTLE_AND_REFUND])
async def test_credits_held_during_a_refund_pay_its_debt_when_released(
    repository, owner, tenant, bought, statements
):
    await hold(owner, tenant.account_id, 100)
    returned = await repository.reverse_payment(going_back(bought, 1500))
    await owner.execute("select ledger.grant_credits($1, 40, 'later', 'admin_grant')", tenant.account_id)

    for statement in statements:
        await owner.execute(statement, tenant.account_id)

    assert (returned.credits_reclaimed, returned.credits_short) == (0, 100)
    assert await balance_of(owner, tenant.account_id) == 40
    assert await findings_of(owner, tenant.account_id) == []


async def test_refund_debt_is_paid_from_the_bought_lot_and_then_from_older_ones(
    repository, owner, tenant, bought
):
    gift = "select ledger.grant_credits($1, 40, 'gift', 'admin_grant', now() + interval '1 day')"
    await owner.execute(gift, tenant.account_id)
    await hold(owner, tenant.account_id, 30, "of the gift")
    await spend(owner, tenant.account_id, 20)  # the other 10 of the gift, and 10 of the bought credits
    await hold(owner, tenant.account_id, 90)
    await repository.reverse_payment(going_back(bought, 1500))
    balances = []

    for reference in ("held", "of the gift"):
        await owner.execute("select ledger.release_hold($1, $2)", tenant.account_id, reference)
        balances.append(await balance_of(owner, tenant.account_id))

    assert balances == [0, 20]
    assert await findings_of(owner, tenant.account_id) == []


async def test_a_release_reports_the_balance_after_the_debt_is_paid(repository, owner, tenant, bought):
    await hold(owner, tenant.account_id, 100)
    await repository.reverse_payment(going_back(bought, 750))

    released = await owner.fetchrow("select * from ledger.release_hold($1, 'held')", tenant.account_id)

    assert (released["credits_available"], released["credits_held"]) == (50, 0)


@pytest.mark.parametrize("is_released_first", [True, False])
async def test_won_dispute_clears_its_debt_and_restores_the_reclaimed_credits(
    repository, owner, tenant, bought, is_released_first
):
    dispute = going_back(bought, 1500, id=f"dp_{uuid.uuid4().hex}")
    await hold(owner, tenant.account_id, 60)
    await repository.reverse_payment(dispute)
    release = ("select ledger.release_hold($1, 'held')", tenant.account_id)
    if is_released_first:
        await owner.execute(*release)

    won = await repository.undo_reversal(dispute.id)
    if not is_released_first:
        await owner.execute(*release)

    assert won.credits_reclaimed == (-100 if is_released_first else -40)
    assert await balance_of(owner, tenant.account_id) == 100
    assert await findings_of(owner, tenant.account_id) == []


async def test_a_failed_refund_pays_the_debt_of_another(repository, owner, tenant, bought):
    other = checkout(tenant.account_id)
    await repository.complete_purchase(other)
    await hold(owner, tenant.account_id, 100)
    refunds = [going_back(bought, 1500), going_back(other, 1500)]
    for refund in refunds:
        await repository.reverse_payment(refund)

    await repository.undo_reversal(refunds[0].id)

    assert await balance_of(owner, tenant.account_id) == 0
    await owner.execute("select ledger.release_hold($1, 'held')", tenant.account_id)
    assert await balance_of(owner, tenant.account_id) == 100
    assert await findings_of(owner, tenant.account_id) == []


async def test_reversals_above_the_payment_reclaim_only_the_bought_credits(repository, owner, tenant, bought):
    """A refund and a dispute of the same money."""
    await owner.execute("select ledger.grant_credits($1, 40, 'gift', 'admin_grant')", tenant.account_id)

    await repository.reverse_payment(going_back(bought, 1500))
    again = await repository.reverse_payment(going_back(bought, 1500, id=f"dp_{uuid.uuid4().hex}"))

    assert (again.credits_reclaimed, again.credits_short) == (0, 0)
    assert await balance_of(owner, tenant.account_id) == 40


async def test_won_dispute_restores_its_credits_once(repository, owner, tenant, bought):
    dispute = going_back(bought, 1500, id=f"dp_{uuid.uuid4().hex}")
    await repository.reverse_payment(dispute)

    first, second = [await repository.undo_reversal(dispute.id) for _ in range(2)]

    assert (first.outcome, first.credits_reclaimed, second.outcome) == ("done", -100, "repeated")
    assert await balance_of(owner, tenant.account_id) == 100
    assert await findings_of(owner, tenant.account_id) == []


async def test_share_after_failed_refunds_is_never_negative(repository, owner, tenant):
    paid = checkout(tenant.account_id, credits=1, paid_cents=10)
    await repository.complete_purchase(paid)
    returns = [going_back(paid, cents) for cents in (4, 4, 1, 1)]
    for one in returns:
        await repository.reverse_payment(one)
    for one in returns[:3]:
        await repository.undo_reversal(one.id)

    last = await repository.reverse_payment(going_back(paid, 1))

    assert (last.outcome, last.credits_reclaimed, last.credits_short) == ("done", 0, 0)
    assert await findings_of(owner, tenant.account_id) == []


async def test_reversal_of_an_unknown_payment_is_reported(repository, bought):
    unknown = await repository.reverse_payment(going_back(bought, 5, payment_id="pi_unknown"))

    assert (unknown.outcome, unknown.account_id) == ("unknown_payment", None)
    assert (await repository.undo_reversal("re_unknown")).outcome == "unknown_payment"


async def test_save_invoice_reports_changes_and_ignores_older_snapshots(repository, owner, tenant):
    open_at, paid_at = await repository.now(), await repository.now()
    draft = invoice()
    paid = changed(draft, status="paid", paid_cents=2900)

    news = [
        await repository.save_invoice(tenant.account_id, draft, open_at),
        await repository.save_invoice(tenant.account_id, paid, paid_at),
        await repository.save_invoice(tenant.account_id, paid, await repository.now()),
        await repository.save_invoice(tenant.account_id, draft, open_at),
    ]

    assert news == [True, True, False, False]
    assert (
        await owner.fetchval("select status from invoices where stripe_invoice_id = $1", draft.id) == "paid"
    )


async def test_snapshot_without_changes_still_rejects_older_snapshots(repository, owner, tenant):
    first, between, last = [await repository.now() for _ in range(3)]
    paid = invoice(status="paid", paid_cents=2900)
    await repository.save_invoice(tenant.account_id, paid, first)
    await repository.save_invoice(tenant.account_id, paid, last)

    await repository.save_invoice(tenant.account_id, changed(paid, status="open"), between)

    assert await owner.fetchval("select status from invoices where stripe_invoice_id = $1", paid.id) == "paid"


async def test_a_checkout_is_closed_once(repository, owner, tenant):
    checkout_id, session_id = uuid.uuid4(), f"cs_{uuid.uuid4().hex}"
    await owner.execute(
        "insert into checkouts (account_id, id, plan, credits, price_cents, currency)"
        " values ($1, $2, 'growth', 250, 2900, 'usd')",
        *(tenant.account_id, checkout_id),
    )

    closed = [
        await repository.close_checkout(session_id, "expired"),
        await repository.close_checkout(session_id, "completed", checkout_id=checkout_id),
        await repository.close_checkout(session_id, "expired"),
    ]

    assert closed == [False, True, False]
    row = await owner.fetchrow("select status, completed_at from checkouts where id = $1", checkout_id)
    assert (row["status"], row["completed_at"] is None) == ("completed", False)


async def test_due_subscription_on_the_own_clock_is_renewed(repository, owner, tenant):
    await owner.execute(
        "update subscriptions set anchor_at = anchor_at - interval '40 days',"
        " period_start = period_start - interval '40 days', period_end = period_end - interval '40 days'"
        " where account_id = $1",
        tenant.account_id,
    )
    before = await balance_of(owner, tenant.account_id)
    due = [one for one in await repository.renewable(1000) if one.account_id == tenant.account_id]

    await repository.renew_internal(1000)

    assert [(one.plan, one.clock, one.monthly_credits) for one in due] == [("free", "internal", 10)]
    assert await balance_of(owner, tenant.account_id) - before == 10
    assert tenant.account_id not in {one.account_id for one in await repository.renewable(1000)}


async def test_refund_of_a_period_reclaims_its_credits(repository, owner, tenant):
    period = {"period_start": STARTED_AT, "period_end": STARTED_AT + timedelta(days=30)}
    own = await owner.fetchval("select id from subscriptions where account_id = $1", tenant.account_id)
    await repository.grant_period(tenant.account_id, own, "growth", **period)
    payment_id = f"pi_{uuid.uuid4().hex}"
    await repository.record_payment(
        tenant.account_id,
        payment_id,
        grant_reference="renewal:x",
        credits=250,
        paid_cents=2900,
        currency="usd",
    )

    returned = await repository.reverse_payment(
        ReversalSnapshot(
            id=f"re_{payment_id}", payment_id=payment_id, returned_cents=2900, status="succeeded"
        )
    )

    assert (returned.credits_reclaimed, await balance_of(owner, tenant.account_id)) == (250, 0)
