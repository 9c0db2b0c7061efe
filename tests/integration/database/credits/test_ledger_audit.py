"""Audit of the ledger: each planted difference is reported."""

import asyncio
import os
import sys

import asyncpg
import pytest

from tests.conftest import PROJECT, make_tenant

HISTORY = """
select ledger.grant_credits($1, 10, 'g1', 'admin_grant', now() + interval '1 day');
select ledger.grant_credits($1, 10, 'g2', 'purchase');
select ledger.place_hold($1, 12, 'open', 'analysis');
select ledger.spend($1, 3, 'spent', 'analysis');
select ledger.reclaim($1, 'g2', 9, 'returned');
select ledger.grant_credits($1, 5, 'g3', 'purchase');
"""
PLANTED = {
    "update credit_accounts set credits_available = credits_available + 1": {
        "available is not the sum of the entries",
        "available is not the sum of the lots",
    },
    "update credit_accounts set credits_held = credits_held - 1 where credits_held > 0": {
        "held is not the sum of the entries",
        "held is not the sum of the lots",
        "held is not the sum of the open holds",
    },
    "update credit_lots set credits_available = credits_available - 1 where credits_available > 0": {
        "available is not the sum of the lots",
        "a lot does not account for what it granted",
    },
    "update credit_lots set credits_granted = credits_granted + 1": {
        "a lot does not account for what it granted"
    },
    "update credit_holds set credits_placed = credits_placed + 1 where status = 'held'": {
        "held is not the sum of the open holds",
        "the lots of a hold do not add up to it",
    },
    "update credit_hold_lots set credits_spent = credits_spent - 1 where credits_spent > 0": {
        "the lots of a charge do not add up to it",
        "a lot does not account for what it granted",
    },
    "update credit_entries set credits_delta = credits_delta + 1 where position = 1": {
        "available is not the sum of the entries",
        "a balance_after does not follow from the one before",
    },
    "update credit_debts set position = 100": {"a debt was not paid from credits that were there"},
    "update credit_debts set credits_paid = credits_paid - 1": {"the charge of a debt is not what was paid"},
    "delete from credit_entries where position = 6": {
        "available is not the sum of the entries",
        "an entry is missing",
    },
    "update credit_entries set created_at = created_at - interval '1 day' where position = 3": {
        "an entry is older than the one before"
    },
}


@pytest.fixture
async def books(spoilable_addresses):
    """A connection to a database with a short history, where entries can be tampered with."""
    connection = await asyncpg.connect(spoilable_addresses.owner)
    tenant = await make_tenant(connection)
    for statement in HISTORY.strip().split("\n"):
        await connection.execute(statement.rstrip(";"), tenant.account_id)
    await connection.execute("alter table credit_entries disable trigger reject_entry_change")
    yield connection
    await connection.close()


async def audit(spoilable_addresses):
    """Runs the command as an operator does."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "core.cli.main", "credits", "audit"),
        env={
            **os.environ,
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": spoilable_addresses.owner,
            "PYTHONPATH": str(PROJECT / "src"),
        },
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def findings(books):
    return {row["finding"] for row in await books.fetch("select finding from ledger.audit()")}


@pytest.mark.parametrize("change", PLANTED)
async def test_a_planted_difference_is_found(books, change):
    assert await findings(books) == set()

    await books.execute(change)

    assert await findings(books) == PLANTED[change]


async def test_the_command_reports_differences_and_fails(books, spoilable_addresses):
    before = await audit(spoilable_addresses)
    await books.execute("update credit_accounts set credits_held = credits_held + 7")

    code, report = await audit(spoilable_addresses)

    assert before[0] == 0
    assert "The ledger is consistent" in before[1]
    assert code == 1
    assert "held is not the sum of the lots" in report
