"""Rules of plan changes and the validity of their previews."""

import uuid
from datetime import timedelta

import msgspec
import pytest

from features.billing.domain.catalog import Offer, Plan
from features.billing.domain.errors import PaymentOverdue, PreviewExpired
from features.billing.domain.plan_changes import (
    PREVIEW_LASTS,
    asked_at,
    check_preview,
    planned_change,
    preview_id,
)
from features.billing.domain.subscriptions import AccountBilling, Subscription
from tests.support import NOON

CREDITS = {"growth": 250, "pro": 1500}


def plan(name, rank):
    return Plan(
        name=name,
        title=name.title(),
        rank=rank,
        monthly_credits=CREDITS[name],
        price_cents=2900,
        currency="usd",
        business_profiles_max=None,
        runs_at_once=1,
        bulk_max=5,
        light_per_hour=5,
        history_days=None,
    )


GROWTH, PRO = plan("growth", 1), plan("pro", 2)
SUBSCRIPTION = Subscription(
    plan="growth",
    status="active",
    clock="stripe",
    stripe_subscription_id="sub_1",
    stripe_item_id="si_1",
    period_start=NOON - timedelta(days=10),
    period_end=NOON + timedelta(days=20),
    next_plan=None,
    cancels_at=None,
    monthly_credits=250,
    credits_granted=250,
    price_cents=2900,
    currency="usd",
)
STANDING = AccountBilling(
    account_id=uuid.uuid4(), plan="growth", stripe_customer_id="cus_1", subscription=SUBSCRIPTION
)


def changed(**fields):
    return msgspec.structs.replace(SUBSCRIPTION, **fields)


@pytest.mark.parametrize("age", [timedelta(0), PREVIEW_LASTS, -timedelta(seconds=30)])
def test_preview_is_valid_for_ten_minutes(age):
    identifier = preview_id(STANDING, PRO, NOON - age)

    check_preview(identifier, STANDING, PRO, NOON)

    assert asked_at(identifier) == NOON - age


@pytest.mark.parametrize("age", [PREVIEW_LASTS + timedelta(seconds=1), -timedelta(minutes=1)])
def test_expired_or_future_preview_is_rejected(age):
    with pytest.raises(PreviewExpired):
        check_preview(preview_id(STANDING, PRO, NOON - age), STANDING, PRO, NOON)


@pytest.mark.parametrize(
    "subscription",
    [
        changed(plan="agency"),
        changed(stripe_subscription_id="sub_2"),
        changed(period_start=NOON),
        changed(credits_granted=0),
        changed(next_plan="growth"),
    ],
)
def test_preview_is_rejected_after_the_subscription_changed(subscription):
    identifier = preview_id(STANDING, PRO, NOON)
    now = msgspec.structs.replace(STANDING, subscription=subscription)

    with pytest.raises(PreviewExpired):
        check_preview(identifier, now, PRO, NOON)


def test_preview_of_another_account_is_rejected():
    identifier = preview_id(msgspec.structs.replace(STANDING, account_id=uuid.uuid4()), PRO, NOON)

    with pytest.raises(PreviewExpired):
        check_preview(identifier, STANDING, PRO, NOON)


def test_upgrade_starts_now_and_grants_the_difference():
    change = planned_change(SUBSCRIPTION, GROWTH, PRO, NOON)

    assert (change.direction, change.effective_at, change.credits_now) == ("upgrade", NOON, 1250)


def test_upgrade_grants_nothing_if_the_period_already_granted_more():
    change = planned_change(changed(credits_granted=5000), GROWTH, PRO, NOON)

    assert change.credits_now == 0


def test_downgrade_starts_with_the_next_period():
    subscription = changed(plan="pro")

    change = planned_change(subscription, PRO, GROWTH, NOON)

    assert (change.direction, change.effective_at) == ("downgrade", subscription.period_end)
    assert change.credits_now == 0


@pytest.mark.parametrize("status", ["past_due", "unpaid", "paused"])
def test_overdue_subscription_cannot_change_the_plan(status):
    with pytest.raises(PaymentOverdue, match=status):
        planned_change(changed(status=status), GROWTH, PRO, NOON)


def test_lookup_key_depends_on_the_amount():
    offer = Offer(
        kind="pack", name="small", title="100 credits", credits=100, price_cents=1500, currency="usd"
    )

    assert offer.lookup_key == "oslira_pack_small_1500_usd"
    assert msgspec.structs.replace(offer, price_cents=1600).lookup_key != offer.lookup_key
