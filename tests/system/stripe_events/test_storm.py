"""Thousands of duplicated, shuffled events while processes are killed: each is applied once (T12)."""

import asyncio
import os
import random
import sys
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.conftest import PROJECT, make_tenant
from tests.support import until
from tests.system.stripe_events.storm_world import purchase_event
from tests.system.stripe_events.stripe_world import signed

PATH = "/v1/webhooks/stripe"
AT_ONCE = 32
ACCOUNTS = 20
SEED = 6
SERVERS_KILLED = 5
APPLIED = "select count(*) from webhook_events where status = 'applied'"
CLAIMED = "select coalesce(sum(attempts), 0) from webhook_events"
CREDITS = """
select coalesce(sum(credits_delta), 0)::bigint from credit_entries
where kind = 'grant' and transaction_type = 'purchase' and account_id = any ($1)
"""


@asynccontextmanager
async def consumer(addresses):
    """Run a worker process and kill it at exit."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.system.stripe_events.consuming_process", addresses.admin),
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert await process.stdout.readline()
        yield process
    finally:
        process.kill()
        await process.wait()


async def consumers(addresses, owner, events_count, *, kills):
    """Run worker processes sequentially; each is killed while it has claimed events."""
    for _ in range(kills):
        async with consumer(addresses):
            before = await owner.fetchval(CLAIMED)
            await until(lambda before=before: is_at_work(owner, before, events_count))
    async with consumer(addresses):
        await until(lambda: is_all_done(owner, events_count), timeout_s=300)


async def is_at_work(owner, before, events_count):
    return await owner.fetchval(CLAIMED) > before + 8 or await is_all_done(owner, events_count)


async def is_all_done(owner, events_count):
    return await owner.fetchval(APPLIED) == events_count


async def accounts_of(owner):
    return [(await make_tenant(owner)).account_id for _ in range(ACCOUNTS)]


def storm_of(accounts, events_count, copies):
    """Return the shuffled copies of all events, and the total credits."""
    chance = random.Random(SEED)
    amounts = [chance.randint(1, 9) for _ in range(events_count)]
    events = [purchase_event(chance.choice(accounts), amount) for amount in amounts]
    deliveries = events * copies
    chance.shuffle(deliveries)
    return deliveries, sum(amounts)


async def deliver_all(deliveries, deliver):
    """Deliver AT_ONCE events concurrently; return the payloads that were not duplicates."""
    new = []
    waiting = iter(deliveries)

    async def send():
        for payload in waiting:
            answer = await deliver(payload)
            if not answer["duplicate"]:
                new.append(payload)

    await asyncio.gather(*(send() for _ in range(AT_ONCE)))
    return new


async def assert_each_applied_once(owner, accounts, credits_bought, events_count):
    assert await owner.fetchval("select count(*) from webhook_events") == events_count
    assert await owner.fetchval("select max(jsonb_array_length(effects)) from webhook_events") == 1
    assert await owner.fetchval(CREDITS, accounts) == credits_bought
    assert await owner.fetch("select * from ledger.audit()") == []


async def test_every_event_is_applied_once_while_workers_are_killed(client, addresses, owner):
    accounts = await accounts_of(owner)
    deliveries, credits_bought = storm_of(accounts, 400, 5)

    async def deliver(payload):
        return (await client.post(PATH, content=payload, headers=signed(payload))).json()

    working = asyncio.create_task(consumers(addresses, owner, 400, kills=2))
    new = await deliver_all(deliveries, deliver)
    await working

    assert len(new) == len(set(new)) == 400
    await assert_each_applied_once(owner, accounts, credits_bought, 400)


@pytest.mark.battery
async def test_every_event_is_applied_once_while_servers_and_workers_are_killed(start, addresses, owner):
    """One process is killed per hundred events: five servers, which restart slowly, and fifteen workers."""
    accounts = await accounts_of(owner)
    deliveries, credits_bought = storm_of(accounts, 2_000, 5)
    chance, port, restarting = random.Random(SEED), None, asyncio.Lock()
    server, port = await start()
    kills = 0

    async def replaced(dead):
        nonlocal server, port
        async with restarting:
            if server is dead:
                server, port = await start()

    async with httpx.AsyncClient(timeout=10) as http:

        async def deliver(payload):
            nonlocal kills
            while True:
                current = server
                if chance.random() < 0.01 and kills < SERVERS_KILLED and not restarting.locked():
                    kills += 1
                    current.kill()
                try:
                    answer = await http.post(
                        f"http://127.0.0.1:{port}{PATH}", content=payload, headers=signed(payload)
                    )
                    if answer.status_code == 200:
                        return answer.json()
                except httpx.TransportError:
                    await replaced(current)

        working = asyncio.create_task(consumers(addresses, owner, 2_000, kills=15))
        new = await deliver_all(deliveries, deliver)
        await working

    assert kills == SERVERS_KILLED
    # A killed server may lose its response, so the first delivery of some events is never seen as new.
    assert len(new) == len(set(new)) <= 2_000
    await assert_each_applied_once(owner, accounts, credits_bought, 2_000)
