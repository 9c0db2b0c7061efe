"""Leases that serialize changes of one subscription."""

import asyncio
import uuid

import pytest

from features.billing.domain.errors import SubscriptionBusy
from infrastructure.database.billing.subscription_locks import LeasedSubscriptionLocks
from infrastructure.database.semaphore import PostgresSemaphore


@pytest.fixture
def slots(database):
    """Semaphores of two processes."""
    return [PostgresSemaphore(database, jitter=min) for _ in range(2)]


async def test_second_change_waits_until_the_first_ends(slots):
    first, second = (LeasedSubscriptionLocks(each) for each in slots)
    account_id, order = uuid.uuid4(), []

    async def change():
        async with second.hold(account_id):
            order.append("second")

    async with first.hold(account_id):
        waiting = asyncio.create_task(change())
        async with second.hold(uuid.uuid4()):  # another account does not wait
            order.append("first")
    await waiting

    assert order == ["first", "second"]


@pytest.mark.parametrize("waiter", [0, 1])
async def test_change_that_waits_too_long_is_refused(slots, waiter):
    holder, impatient = (
        LeasedSubscriptionLocks(slots[0]),
        LeasedSubscriptionLocks(slots[waiter], wait_s_max=0.2),
    )
    account_id = uuid.uuid4()

    async with holder.hold(account_id):
        with pytest.raises(SubscriptionBusy):
            async with impatient.hold(account_id):
                pytest.fail("two changes at once")

    async with impatient.hold(account_id):
        pass  # the lease was released
