"""Concurrent and killed clients of the ledger: no credit is lost, doubled or invented."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support import until
from tests.support.sql_ledger import LedgerRejection, SqlLedger

KILLED = Path(__file__).parent / "killed_client.py"


@pytest.fixture
def ledger(database):
    return SqlLedger(database.admin("test"))


@pytest.fixture(autouse=True)
async def the_books_agree(ledger):
    yield
    assert await ledger.audit() == []


async def give(owner, tenant, credits_granted):
    await owner.execute(
        "select ledger.grant_credits($1, $2, 'given', 'admin_grant')", tenant.account_id, credits_granted
    )


def hold(ledger, tenant, reference):
    return ledger.place_hold(tenant.account_id, 1, reference)


async def test_hundred_concurrent_holds_on_ten_credits_get_exactly_ten(owner, ledger, tenant):
    await give(owner, tenant, 10)

    outcomes = await asyncio.gather(
        *(hold(ledger, tenant, f"rival:{number}") for number in range(100)), return_exceptions=True
    )

    rejected = [str(outcome) for outcome in outcomes if isinstance(outcome, LedgerRejection)]
    assert rejected == ["insufficient"] * 90


async def test_hundred_concurrent_spends_on_ten_credits_succeed_ten_times(database, owner, tenant):
    await give(owner, tenant, 10)
    session = database.admin("test")

    rows = await asyncio.gather(
        *(
            session.fetch("select * from deduct_credits($1, -1, 'analysis', $2)", tenant.account_id, f"s{n}")
            for n in range(100)
        )
    )

    outcomes = [row["outcome"] for (row,) in rows]
    assert (outcomes.count("done"), outcomes.count("insufficient")) == (10, 90)
    assert (
        await owner.fetchval(
            "select credits_available from credit_accounts where account_id = $1", tenant.account_id
        )
        == 0
    )


async def test_concurrent_placements_of_one_hold_place_it_once(owner, ledger, tenant):
    await give(owner, tenant, 10)

    movements = await asyncio.gather(*(hold(ledger, tenant, "one") for _ in range(64)))

    assert sum(not movement.repeated for movement in movements) == 1


async def test_one_of_sixty_four_concurrent_refunds_of_one_charge_succeeds(owner, ledger, tenant):
    await give(owner, tenant, 10)
    await hold(ledger, tenant, "charge")
    await ledger.settle_hold(tenant.account_id, reference="charge", credits_spent=1)

    movements = await asyncio.gather(
        *(ledger.refund(tenant.account_id, "charge", 1, "refund") for _ in range(64))
    )

    assert sum(not movement.repeated for movement in movements) == 1


async def test_settle_and_release_never_both_end_a_hold(owner, ledger, tenant):
    await give(owner, tenant, 50)
    for number in range(50):
        await hold(ledger, tenant, f"h{number}")

    async def ends(number):
        outcomes = await asyncio.gather(
            ledger.settle_hold(tenant.account_id, reference=f"h{number}", credits_spent=1),
            ledger.release_hold(tenant.account_id, reference=f"h{number}"),
            return_exceptions=True,
        )
        return sorted(isinstance(outcome, LedgerRejection) for outcome in outcomes)

    assert await asyncio.gather(*(ends(number) for number in range(50))) == [[False, True]] * 50


async def test_clients_killed_in_a_transaction_leave_a_consistent_ledger(addresses, owner, tenant, ledger):
    await give(owner, tenant, 1_000_000)

    async def count():
        return await owner.fetchval(
            "select entries_count from credit_accounts where account_id = $1", tenant.account_id
        )

    for _ in range(3):
        before = await count()
        client = await asyncio.create_subprocess_exec(
            sys.executable, KILLED, addresses.admin, str(tenant.account_id)
        )
        await until(lambda before=before: _more_than(count, before + 10))
        os.kill(client.pid, signal.SIGKILL)
        await client.wait()

    await until(lambda: _is_only_connection(owner))
    assert (await ledger.audit()) == []
    assert (await hold(ledger, tenant, "after")).repeated is False


async def _more_than(count, number):
    return await count() > number


async def _is_only_connection(owner):
    return not await owner.fetchval(
        "select exists (select from pg_stat_activity where application_name = 'killed_client')"
    )
