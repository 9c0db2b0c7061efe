"""Checkouts and catalog with fakes behind their ports."""

import uuid

import pytest

from features.billing.application.catalog import Catalog
from features.billing.domain.errors import (
    AlreadySubscribed,
    CheckoutNotFound,
    NoSubscription,
    PackUnknown,
    PlanNotSold,
    PlanUnknown,
    ReturnAddressForeign,
)
from tests.support.stripe_snapshots import checkout as session_at_stripe

ADDRESSES = {"success_url": None, "cancel_url": None}


def sessions(writes):
    return [call for call in writes.calls if call[0] == "open_checkout"]


async def test_first_checkout_creates_customer_and_price_and_stores_both(checkouts, billing, writes, caller):
    opened = await checkouts.open_plan(caller, uuid.uuid4(), "growth", **ADDRESSES)

    assert (opened.status, opened.price_cents, opened.credits) == ("open", 2900, 250)
    assert billing.state.stripe_customer_id == "cus_new"
    assert sessions(writes) == [("open_checkout", "cus_new", "price_growth")]
    assert list(billing.price_ids.values()) == ["price_growth"]


async def test_repeated_checkout_returns_the_same_session(checkouts, writes, caller):
    checkout_id = uuid.uuid4()

    first, second = [await checkouts.open_pack(caller, checkout_id, "small", **ADDRESSES) for _ in range(2)]

    assert first == second
    assert len(sessions(writes)) == 1


async def test_open_checkout_for_the_same_plan_is_returned(checkouts, stripe, caller, monkeypatch):
    first = await checkouts.open_plan(caller, uuid.uuid4(), "growth", **ADDRESSES)
    at_stripe = session_at_stripe(None, id=first.stripe_session_id, status="open")

    async def find(_session_id):
        return at_stripe

    monkeypatch.setattr(stripe, "checkout", find, raising=False)

    assert await checkouts.open_plan(caller, uuid.uuid4(), "growth", **ADDRESSES) == first


async def test_open_checkout_for_another_plan_is_expired_first(checkouts, billing, writes, caller):
    first = await checkouts.open_plan(caller, uuid.uuid4(), "growth", **ADDRESSES)

    second = await checkouts.open_plan(caller, uuid.uuid4(), "pro", **ADDRESSES)

    assert ("expire_checkout", first.stripe_session_id) in writes.calls
    assert (billing.checkouts[first.id].status, second.plan) == ("expired", "pro")


@pytest.mark.parametrize(
    ("plan", "error"), [("free", PlanNotSold), ("unknown", PlanUnknown)], ids=["not sold", "unknown"]
)
async def test_plan_that_cannot_be_bought_is_rejected(checkouts, writes, caller, plan, error):
    with pytest.raises(error):
        await checkouts.open_plan(caller, uuid.uuid4(), plan, **ADDRESSES)

    assert writes.calls == []


async def test_unknown_pack_is_rejected(checkouts, caller):
    with pytest.raises(PackUnknown):
        await checkouts.open_pack(caller, uuid.uuid4(), "huge", **ADDRESSES)


async def test_subscribed_account_cannot_buy_a_second_plan(checkouts, subscriber, billing, caller):
    billing.state = subscriber.state

    with pytest.raises(AlreadySubscribed):
        await checkouts.open_plan(caller, uuid.uuid4(), "pro", **ADDRESSES)


@pytest.mark.parametrize(
    "address",
    ["https://evil.example/", "http://app.example/", "//app.example", "https://app.example\\@evil.example"],
)
async def test_return_address_of_another_origin_is_rejected(checkouts, writes, caller, address):
    with pytest.raises(ReturnAddressForeign):
        await checkouts.open_pack(caller, uuid.uuid4(), "small", success_url=address, cancel_url=None)

    assert writes.calls == []


async def test_portal_needs_a_customer(checkouts, billing, writes, caller):
    with pytest.raises(NoSubscription):
        await checkouts.portal(caller, uuid.uuid4(), return_url=None)

    await billing.store_customer(None, "cus_1")
    await checkouts.portal(caller, uuid.uuid4(), return_url=None)

    assert writes.calls == [("open_portal", "cus_1", "https://app.example/billing")]


async def test_unknown_checkout_is_not_found(checkouts, caller):
    with pytest.raises(CheckoutNotFound):
        await checkouts.get(caller, uuid.uuid4())


async def test_publishing_skips_free_plans_and_is_idempotent(billing, writes):
    catalog = Catalog(billing, writes)

    first, second = await catalog.publish(), await catalog.publish()

    assert [(one.offer.name, one.is_new) for one in first] == [
        ("growth", True),
        ("pro", True),
        ("small", True),
    ]
    assert not any(one.is_new for one in second)
