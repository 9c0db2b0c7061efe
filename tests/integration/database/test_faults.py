"""Ledger under faults: the server is killed repeatedly while many clients spend."""

import asyncio
import os
import signal
import uuid

import asyncpg
import pytest

from core.wiring.bootstrap import DatabaseUrls
from infrastructure.database.clients import DatabaseUnavailable
from infrastructure.database.credits.ledger import PostgresCreditReader
from infrastructure.database.embedded_postgres import embedded_postgres
from infrastructure.database.migrate import migrate
from tests.conftest import make_tenant
from tests.support import dual_client, until
from tests.support.sql_ledger import SqlLedger

CREDITS = 1_000_000


async def the_bank(folder, *, kills, writers):
    """Returns the acknowledged spends, the final balance, and the audit's findings."""
    async with embedded_postgres(folder, "bank") as server:
        await migrate(server.url("bank"))
        owner = await asyncpg.connect(server.url("bank"))
        tenant = await make_tenant(owner)
        await owner.execute(
            "select ledger.grant_credits($1, $2, 'g', 'purchase')", tenant.account_id, CREDITS
        )
        await owner.close()
        addresses = DatabaseUrls(
            owner="", user=server.url("bank", "app_user"), admin=server.url("bank", "app_admin")
        )
        async with dual_client(addresses) as database:
            ledger, reader = SqlLedger(database.admin("bank")), PostgresCreditReader(database)
            acknowledged, stop = [], asyncio.Event()
            work = [asyncio.create_task(spend(ledger, tenant, acknowledged, stop)) for _ in range(writers)]
            for _ in range(kills):
                await more(acknowledged, 50)
                os.kill(pid_of(folder), signal.SIGKILL)
                await more(acknowledged, 10)
            stop.set()
            await asyncio.gather(*work)
            balance = (await reader.balance(tenant.caller)).credits_available
            return len(acknowledged), balance, await ledger.audit()


async def more(acknowledged, count):
    enough = len(acknowledged) + count
    await until(lambda: len(acknowledged) >= enough)


async def spend(ledger, tenant, acknowledged, stop):
    """Spends one credit at a time; a spend with an unknown result is repeated under the same reference."""
    while not stop.is_set():
        reference = str(uuid.uuid4())
        await persist(lambda reference=reference: ledger.place_hold(tenant.account_id, 1, reference))
        await persist(
            lambda reference=reference: ledger.settle_hold(
                tenant.account_id, reference=reference, credits_spent=1
            )
        )
        acknowledged.append(reference)


async def persist(call):
    while True:
        try:
            return await call()
        except DatabaseUnavailable:
            await asyncio.sleep(0.01)


def pid_of(folder):
    return int((folder / "data" / "postmaster.pid").read_text().split("\n")[0])


async def test_no_acknowledged_spend_is_lost_or_doubled_when_the_server_is_killed(tmp_path):
    spends, balance, findings = await the_bank(tmp_path / "postgres", kills=1, writers=4)

    assert balance == CREDITS - spends
    assert findings == []


@pytest.mark.battery
async def test_no_acknowledged_spend_is_lost_or_doubled_over_many_kills(tmp_path):
    spends, balance, findings = await the_bank(tmp_path / "postgres", kills=8, writers=16)

    assert balance == CREDITS - spends
    assert findings == []
