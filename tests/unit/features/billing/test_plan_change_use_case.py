"""Plan changes with fakes behind their ports."""

import uuid

import pytest

from features.billing.domain.errors import (
    AlreadyCancelled,
    NoSubscription,
    NothingToResume,
    PaymentFailed,
    PreviewExpired,
)
from tests.fakes.billing import ACCOUNT, FakeBilling
from tests.support import NOON

KEY = uuid.UUID(int=7)


async def changed_to(changes, caller, plan):
    preview = await changes.preview(caller, plan)
    return await changes.change(caller, plan, preview.id, key=KEY)


async def test_upgrade_preview_names_amount_and_credits(changes, writes, caller):
    preview = await changes.preview(caller, "pro")

    assert (preview.due_now_cents, preview.currency) == (4_500, "usd")
    assert (preview.change.direction, preview.change.credits_now) == ("upgrade", 1_250)
    assert writes.calls == [("publish", "pro")]


async def test_upgrade_is_made_once_under_the_account_lock_and_shown_at_once(
    changes, subscriber, writes, caller
):
    billing = await changed_to(changes, caller, "pro")

    assert (billing.plan, billing.subscription.plan) == ("pro", "pro")
    assert [call for call in writes.calls if call[0] == "upgrade"] == [("upgrade", KEY)]
    assert subscriber.locked == 1
    assert subscriber.applied[-1] == (ACCOUNT, "sub_1", NOON)


async def test_used_preview_is_rejected_for_another_change(changes, writes, caller):
    preview = await changes.preview(caller, "pro")
    await changes.change(caller, "pro", preview.id, key=KEY)
    writes.calls.clear()

    with pytest.raises(PreviewExpired):
        await changes.change(caller, "growth", preview.id, key=KEY)

    assert writes.calls == []


async def test_downgrade_is_scheduled_for_the_end_of_the_period(changes, subscriber, writes, caller, stripe):
    stripe.change("sub_1", price_id="price_pro")
    subscriber.state = FakeBilling("pro", customer_id="cus_1").state

    billing = await changed_to(changes, caller, "growth")

    assert (billing.plan, billing.subscription.next_plan) == ("pro", "growth")
    assert ("downgrade", KEY) in writes.calls


async def test_declined_card_leaves_the_plan_and_stores_stripes_state(changes, subscriber, writes, caller):
    writes.is_card_declined = True
    preview = await changes.preview(caller, "pro")

    with pytest.raises(PaymentFailed):
        await changes.change(caller, "pro", preview.id, key=KEY)

    assert subscriber.state.plan == "growth"
    assert len(subscriber.applied) == 2  # before the change, and after the declined card


async def test_change_at_stripe_invalidates_the_preview(changes, stripe, writes, caller):
    preview = await changes.preview(caller, "pro")
    stripe.change("sub_1", next_price_id="price_free", schedule_id="sub_sched_1")

    with pytest.raises(PreviewExpired):
        await changes.change(caller, "pro", preview.id, key=KEY)

    assert not any(call[0] == "upgrade" for call in writes.calls)


async def test_cancelled_subscription_can_be_resumed_once(changes, caller):
    cancelled = await changes.cancel(caller, key=KEY)
    with pytest.raises(AlreadyCancelled):
        await changes.cancel(caller, key=KEY)
    resumed = await changes.resume(caller, key=KEY)

    assert cancelled.subscription.cancels_at is not None
    assert resumed.subscription.cancels_at is None
    with pytest.raises(NothingToResume):
        await changes.resume(caller, key=KEY)


async def test_resume_releases_a_planned_downgrade(changes, subscriber, stripe, writes, caller):
    stripe.change("sub_1", next_price_id="price_free", schedule_id="sub_sched_1")

    await changes.resume(caller, key=KEY)

    assert ("release", "sub_sched_1") in writes.calls
    assert subscriber.state.subscription.next_plan is None


@pytest.mark.parametrize("verb", ["cancel", "resume"])
async def test_account_without_paid_subscription_has_nothing_to_change(changes, subscriber, caller, verb):
    subscriber.state = FakeBilling().state

    with pytest.raises(NoSubscription):
        await getattr(changes, verb)(caller, key=KEY)
