"""Crashes between any two statements: accepted events are stored and applied once (T14)."""

import asyncio
import json
import sys

import pytest

from core.wiring.inbox import consumption_on
from tests.conftest import PROJECT
from tests.integration.database.billing.snapshots import checkout
from tests.system.stripe_events.crashes import Crash, CrashingSession
from tests.system.stripe_events.purchases import STATE, purchase_of
from tests.system.stripe_events.storm_world import DerivedWorld, purchase_event

STATEMENTS_MAX = 40


async def work_until_crash(database, world, statements):
    """Process one event; return True when it finished before the crash."""
    consumption = consumption_on(CrashingSession(database, statements), world)
    try:
        for event in await consumption.line.claim(1):
            await consumption.consume(event)
    except Crash:
        return False
    return True


async def recovered(desk, payload):
    """Expire the claim of the crashed worker, redeliver the event and process it with another worker."""
    await desk.time_passes()
    await desk.take(payload)
    return await desk.work()


async def test_crash_after_any_statement_leaves_no_partial_effect(desk, database, world, tenant, customer):
    balance, statements, endings = 0, 0, []
    is_whole = False
    while not is_whole:
        statements += 1
        bought = checkout(tenant.account_id, customer_id=customer)
        world.have(bought)
        payload = world.tell("checkout.session.completed", bought.id)
        await desk.take(payload)

        is_whole = await work_until_crash(database, world, statements)
        half = await desk.balance(tenant.account_id)
        status = await desk.status(payload)
        endings.append(await recovered(desk, payload))
        balance += 100

        # Credits are granted if and only if the event is marked as applied.
        assert half == (balance if status == "applied" else balance - 100), statements
        assert await desk.balance(tenant.account_id) == balance
        assert await desk.status(payload) == "applied"
        assert statements < STATEMENTS_MAX

    assert statements >= 7  # claim, time, lock, account, existence check, grant, mark as applied
    assert endings == [["applied"]] * (statements - 1) + [[]]


async def test_subscription_is_applied_once_despite_crashed_attempts(
    desk, database, world, owner, tenant, customer, prices
):
    purchase = purchase_of(tenant.account_id, customer, prices["growth"])
    purchase.reach(world, 3)
    paid = purchase.events[1]
    await desk.take(paid)
    statements = 0
    while await desk.status(paid) != "applied":
        statements += 1
        await work_until_crash(database, world, statements)
        await desk.time_passes()
        assert await desk.balance(tenant.account_id) == (
            250 if await desk.status(paid) == "applied" else 0
        ), statements
        await owner.execute("update webhook_events set failures = 0")  # they would reach the limit

    await desk.news(*purchase.events)

    assert statements > 10
    state = tuple(await owner.fetchrow(STATE, tenant.account_id))
    assert state[:4] == ("growth", 250, "growth", "active")


async def test_worker_with_an_expired_claim_changes_nothing(desk, world, tenant):
    bought = checkout(tenant.account_id)
    world.have(bought)
    payload = world.tell("checkout.session.completed", bought.id)
    await desk.take(payload)
    (slow,) = await desk.consumption.line.claim(1)
    await desk.time_passes()
    assert await desk.work() == ["applied"]

    assert (await desk.consumption.consume(slow))[0] == "taken_over"

    assert await desk.balance(tenant.account_id) == 100
    assert len(json.loads((await desk.row(payload))["effects"])) == 1


async def test_worker_with_an_expired_claim_cannot_requeue_an_applied_event(desk, world, tenant):
    bought = checkout(tenant.account_id)
    world.have(bought)
    payload = world.tell("checkout.session.completed", bought.id)
    await desk.take(payload)
    (slow,) = await desk.consumption.line.claim(1)
    await desk.time_passes()
    await desk.work()
    world.things[bought.id] = RuntimeError()

    assert (await desk.consumption.consume(slow))[0] == "taken_over"

    assert await desk.status(payload) == "applied"


@pytest.mark.battery
async def test_process_killed_after_any_statement_leaves_no_partial_effect(desk, addresses, tenant, database):
    desk.consumption = consumption_on(database.admin("tests"), DerivedWorld())
    balance, statements, code = 0, 0, None
    while code != 0:
        statements += 1
        payload = purchase_event(tenant.account_id, 100)
        await desk.take(payload)
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
        await recovered(desk, payload)
        balance += 100
        assert await desk.balance(tenant.account_id) == balance
        assert await desk.status(payload) == "applied"

    assert statements >= 7
