"""Events in any order and repetition: the same final state and one grant (T13)."""

import asyncio
import itertools
import random
import uuid

import pytest

from tests.conftest import make_tenant
from tests.support import until
from tests.support.stripe_snapshots import STARTED_AT
from tests.system.stripe_events.purchases import STATE, purchase_of

ORDERS = list(itertools.permutations(range(4)))
OPEN_CHECKOUT = """
insert into checkouts (account_id, id, plan, credits, price_cents, currency, status)
values ($1, $2, 'growth', 0, 2900, 'usd', 'open')
"""


@pytest.fixture
def buy(owner, prices):
    """Factory of new accounts with an open checkout and its purchase."""

    async def begin():
        tenant, customer_id = await make_tenant(owner), f"cus_{uuid.uuid4().hex}"
        await owner.execute("insert into billing_customers values ($1, $2)", tenant.account_id, customer_id)
        purchase = purchase_of(tenant.account_id, customer_id, prices["growth"])
        await owner.execute(OPEN_CHECKOUT, tenant.account_id, purchase.checkout_id)
        return tenant.account_id, purchase

    return begin


async def state_of(owner, account_id):
    return tuple(await owner.fetchrow(STATE, account_id))


def assert_bought(state):
    plan, credits_available, bought, status, period_start, _, ended_at, entries, periods, *rest = state
    assert (plan, credits_available, bought, status, period_start) == (
        *("growth", 250, "growth", "active", STARTED_AT),
    )
    assert ended_at is None
    assert entries == ["(grant,renewal,250)"]
    assert len(periods) == 1
    assert [len(rows) for rows in rest] == [1, 1, 1]
    assert rest[-1] == ["completed"]


@pytest.mark.parametrize("copies", [1, 3])
async def test_every_order_leads_to_the_same_state(inbox, world, owner, buy, copies):
    """At each delivery, Stripe's objects have at least the state of the latest delivered event."""
    ends = set()
    for order in ORDERS:
        account_id, purchase = await buy()
        reached = -1
        deliveries = [number for number in order for _ in range(copies)]
        if copies == 3:  # copies are interleaved
            random.Random(str(order)).shuffle(deliveries)
        for number in deliveries:
            reached = max(reached, number)
            purchase.reach(world, reached)
            await inbox.process_all(purchase.events[number])
        for payload in purchase.events:  # replay every event once more
            await inbox.events.replay((await inbox.row(payload))["stripe_event_id"])
        await inbox.work()
        ends.add(repr(await state_of(owner, account_id)))

    assert len(ends) == 1
    assert_bought(await state_of(owner, account_id))


async def test_concurrent_events_lead_to_the_same_state(consuming, inbox, world, owner, buy):
    accounts = []
    for _ in range(12):
        account_id, purchase = await buy()
        purchase.reach(world, 3)
        accounts.append(account_id)
        await asyncio.gather(*(inbox.receive(payload) for payload in purchase.events * 2))
    consuming.set()

    await until(
        lambda: owner.fetchval("select count(*) = 48 from webhook_events where status = 'applied'"),
        timeout_s=20,
    )

    ends = {repr(await state_of(owner, account_id)) for account_id in accounts}
    assert len(ends) == 1
    assert_bought(await state_of(owner, accounts[0]))


async def test_stale_snapshot_does_not_overwrite_a_newer_one(inbox, world, owner, buy):
    """A snapshot is fetched before another one and applied after it."""
    account_id, purchase = await buy()
    purchase.reach(world, 0)
    await inbox.receive(purchase.events[0])
    (slow,) = await inbox.processor.queue.claim(1)
    old = await inbox.processor.state_fetcher.fetch(slow.payload)
    purchase.reach(world, 3)
    await inbox.process_all(*purchase.events[1:])

    changed = await inbox.processor.events.apply(old)

    assert changed.effects[0].outcome in ("stale", "incomplete")
    assert_bought(await state_of(owner, account_id))
