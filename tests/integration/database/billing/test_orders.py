"""Repository of checkouts, Stripe customers and prices."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from features.billing.domain.catalog import Offer
from features.billing.domain.subscriptions import OpenSession, Order
from infrastructure.database.billing.queries import PostgresOffers, PostgresOrders


@pytest.fixture
def orders(database):
    return PostgresOrders(database.admin("tests"))


def order(tenant, **fields):
    return Order(
        **{
            "id": uuid.uuid4(),
            "account_id": tenant.account_id,
            "user_id": tenant.caller.id,
            "plan": "growth",
            "pack": None,
            "credits": 250,
            "price_cents": 2900,
            "currency": "usd",
            "success_url": "https://app.example/ok",
            "cancel_url": "https://app.example/no",
            **fields,
        }
    )


def session():
    return OpenSession(
        id=f"cs_{uuid.uuid4().hex}",
        url="https://stripe.example/pay",
        expires_at=datetime.now(UTC) + timedelta(hours=24),
    )


async def test_concurrent_plan_orders_share_one_checkout(orders, tenant):
    begun = await asyncio.gather(*(orders.begin(order(tenant)) for _ in range(8)))

    assert len({checkout.id for checkout in begun}) == 1


async def test_each_pack_order_has_its_own_checkout(orders, tenant):
    packs = [order(tenant, plan=None, pack="small") for _ in range(2)]

    begun = [await orders.begin(pack) for pack in packs]

    assert [checkout.id for checkout in begun] == [pack.id for pack in packs]


@pytest.mark.parametrize("change", ["status = 'expired'", "expires_at = now() - interval '1 second'"])
async def test_closed_or_expired_checkout_does_not_block_a_new_one(orders, owner, tenant, change):
    first = await orders.begin(order(tenant))
    await orders.opened(first, session())
    await owner.execute(f"update checkouts set {change} where id = $1", first.id)

    assert (await orders.begin(order(tenant))).id != first.id


async def test_closed_checkout_is_not_opened(orders, tenant):
    checkout = await orders.begin(order(tenant))
    await orders.close(checkout, "expired")

    assert await orders.opened(checkout, session()) is None


async def test_checkout_completed_before_it_was_opened_stays_completed(orders, owner, tenant):
    checkout, opened = await orders.begin(order(tenant)), session()
    await owner.execute(
        "update checkouts set status = 'completed', completed_at = now(), stripe_session_id = $2"
        " where id = $1",
        *(checkout.id, opened.id),
    )

    noted = await orders.opened(checkout, opened)
    await orders.close(checkout, "expired")

    assert (noted.status, noted.url) == ("completed", opened.url)
    status = await owner.fetchval("select status from checkouts where id = $1", checkout.id)
    assert status == "completed"


async def test_first_customer_id_of_an_account_is_kept(orders, tenant):
    made = [f"cus_{uuid.uuid4().hex}" for _ in range(2)]

    kept = [await orders.store_customer(tenant.account_id, customer_id) for customer_id in made]

    assert kept == [made[0]] * 2


async def test_price_is_found_by_its_amount(database):
    offers = PostgresOffers(database.admin("tests"))
    offer = Offer(kind="pack", name="large", title="x", credits=2000, price_cents=77, currency="eur")
    price_id = f"price_{uuid.uuid4().hex}"

    before = await offers.price_id(offer)
    for _ in range(2):
        await offers.store_price(offer, price_id)

    assert (before, await offers.price_id(offer)) == (None, price_id)
