"""Crashes between any two statements: accepted events are stored and applied once (T14)."""

import asyncio
import json
import sys

import pytest

from core.wiring.slices.billing import stripe_event_processor
from tests.conftest import PROJECT
from tests.support.stripe_snapshots import checkout
from tests.system.stripe_events.crashes import Crash, CrashingSession
from tests.system.stripe_events.purchases import STATE, purchase_of
from tests.system.stripe_events.storm_world import DerivedWorld, purchase_event

STATEMENTS_MAX = 40


async def work_until_crash(database, world, statements):
    """Process one event; return True when it finished before the crash."""
    processor = stripe_event_processor(CrashingSession(database, statements), world)
    try:
        for event in await processor.queue.claim(1):
            await processor.process(event)
    except Crash:
        return False
    return True


async def recovered(inbox, payload):
    """Expire the claim of the crashed worker, redeliver the event and process it with another worker."""
    await inbox.time_passes()
    await inbox.receive(payload)
    return await inbox.work()


async def test_crash_after_any_statement_leaves_no_partial_effect(inbox, database, world, tenant, customer):
    balance, statements, endings = 0, 0, []
    is_whole = False
    while not is_whole:
        statements += 1
        bought = checkout(tenant.account_id, customer_id=customer)
        world.have(bought)
        payload = world.emit("checkout.session.completed", bought.id)
        await inbox.receive(payload)

        is_whole = await work_until_crash(database, world, statements)
        half = await inbox.balance(tenant.account_id)
        status = await inbox.status(payload)
        endings.append(await recovered(inbox, payload))
        balance += 100

        # Credits are granted if and only if the event is marked as applied.
        assert half == (balance if status == "applied" else balance - 100), statements
        assert await inbox.balance(tenant.account_id) == balance
        assert await inbox.status(payload) == "applied"
        assert statements < STATEMENTS_MAX

    assert statements >= 7  # claim, time, lock, account, existence check, grant, mark as applied
    assert endings == [["applied"]] * (statements - 1) + [[]]


async def test_subscription_is_applied_once_despite_crashed_attempts(
    inbox, database, world, owner, tenant, customer, prices
):
    purchase = purchase_of(tenant.account_id, customer, prices["growth"])
    purchase.reach(world, 3)
    paid = purchase.events[1]
    await inbox.receive(paid)
    statements = 0
    while await inbox.status(paid) != "applied":
        statements += 1
        await work_until_crash(database, world, statements)
        await inbox.time_passes()
        assert await inbox.balance(tenant.account_id) == (
            250 if await inbox.status(paid) == "applied" else 0
        ), statements
        await owner.execute("update webhook_events set failures = 0")  # they would reach the limit

    await inbox.process_all(*purchase.events)

    assert statements > 10
    state = tuple(await owner.fetchrow(STATE, tenant.account_id))
    assert state[:4] == ("growth", 250, "growth", "active")


async def test_worker_with_an_expired_claim_changes_nothing(inbox, world, tenant):
    bought = checkout(tenant.account_id)
    world.have(bought)
    payload = world.emit("checkout.session.completed", bought.id)
    await inbox.receive(payload)
    (slow,) = await inbox.processor.queue.claim(1)
    await inbox.time_passes()
    assert await inbox.work() == ["applied"]

    assert (await inbox.processor.process(slow))[0] == "taken_over"

    assert await inbox.balance(tenant.account_id) == 100
    assert len(json.loads((await inbox.row(payload))["effects"])) == 1


async def test_worker_with_an_expired_claim_cannot_requeue_an_applied_event(inbox, world, tenant):
    bought = checkout(tenant.account_id)
    world.have(bought)
    payload = world.emit("checkout.session.completed", bought.id)
    await inbox.receive(payload)
    (slow,) = await inbox.processor.queue.claim(1)
    await inbox.time_passes()
    await inbox.work()
    world.things[bought.id] = RuntimeError()

    assert (await inbox.processor.process(slow))[0] == "taken_over"

    assert await inbox.status(payload) == "applied"


@pytest.mark.battery
async def test_process_killed_after_any_statement_leaves_no_partial_effect(
    inbox, addresses, tenant, database
):
    inbox.processor = stripe_event_processor(database.admin("tests"), DerivedWorld())
    balance, statements, code = 0, 0, None
    while code != 0:
        statements += 1
        payload = purchase_event(tenant.account_id, 100)
        await inbox.receive(payload)
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "tests.system.stripe_events.dying_process",
                addresses.admin,
                str(statements),
            ),
            cwd=PROJECT,
            env={"PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT}"},
        )
        code = await process.wait()

        assert code in (0, -9)
        await recovered(inbox, payload)
        balance += 100
        assert await inbox.balance(tenant.account_id) == balance
        assert await inbox.status(payload) == "applied"

    assert statements >= 7
