"""Helpers that start runs and read their rows."""

import uuid

from features.runs.domain.run import NewRun
from shared.ids import RunId


def new_run(tenant, **changes):
    values = {
        "account_id": tenant.account_id,
        "id": RunId(uuid.uuid4()),
        "kind": "three_steps",
        "subject": {"name": "ada"},
        "credits_held": 5,
        "transaction_type": "analysis",
        "queue": "no_worker",
    }
    return NewRun(**values | changes)


async def credits_of(owner, tenant):
    row = await owner.fetchrow(
        "select credits_available, credits_held from credit_accounts where account_id = $1", tenant.account_id
    )
    return tuple(row)


async def in_queue(owner, run_id):
    return await owner.fetchval(
        "select status from dbos.workflow_status where workflow_uuid = $1", str(run_id)
    )


async def findings(owner, tenant):
    return await owner.fetch("select * from ledger.audit() where account_id = $1", tenant.account_id)


async def make_older(owner, run, *, minutes):
    """Backdates the run: admitted an hour ago, and without progress for this many minutes."""
    async with owner.transaction():
        await owner.execute("set local session_replication_role = 'replica'")  # no trigger records the change
        await owner.execute(
            "update runs set admitted_at = now() - interval '1 hour',"
            " updated_at = now() - make_interval(mins => $2) where id = $1",
            run.id,
            minutes,
        )
