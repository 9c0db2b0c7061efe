import multiprocessing
import os
import signal
import uuid

import asyncpg
import pytest

from core.wiring.bootstrap import read_runtime
from features.runs.domain.run import NewRun
from infrastructure.database.runs.runs import PostgresRuns
from shared.ids import RunId
from tests.conftest import copy_of, make_tenant
from tests.support import dual_client, until
from tests.system.engine.three_steps import KIND, NOTES, run_worker

CREDITS = 1_000


# Processes are forked from a server that has imported everything, because the imports take seconds.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.system.engine.three_steps", "tests.system.workflows.world"])


class Workers:
    """Worker processes."""

    def __init__(self, addresses, folder):
        self._environ = {
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": addresses.owner,
            "OSLIRA_DATA_DIR": str(folder),
        }
        self._addresses = addresses
        self.go_on = folder / "go-on"
        self.processes = []

    async def start(self, *, does=run_worker, halts=False, **environ):
        """Return when the worker is registered. ``halts``: it halts at the places that the runs name."""
        before = await self._count()
        process = FORKS.Process(
            target=does, args=({**self._environ, **environ}, self.go_on if halts else None)
        )
        process.start()
        self.processes.append(process)
        await until(lambda: self._is_more_than(before, process), timeout_s=90)
        assert process.exitcode is None
        return process

    async def _count(self):
        connection = await asyncpg.connect(self._addresses.owner)
        count = await connection.fetchval("select count(*) from traffic.workers")
        await connection.close()
        return count

    async def _is_more_than(self, before, process):
        return process.exitcode is not None or await self._count() > before

    async def end_all(self):
        for process in self.processes:
            if process.exitcode is None:
                os.kill(process.pid, signal.SIGCONT)
                process.kill()
            await code_of(process)
            process.close()


async def code_of(process):
    """Wait for the end of a process and return its exit code."""
    await until(lambda: process.exitcode is not None, timeout_s=60)
    return process.exitcode


async def on_plan(owner, tenant, runs_at_once):
    """Put the account on a plan with this limit of concurrent runs."""
    plan = "plan_" + "a" * runs_at_once if runs_at_once < 10 else "plan_for_crowds"
    await owner.execute(
        "insert into plans (name, runs_at_once) values ($1, $2) on conflict do nothing", plan, runs_at_once
    )
    await owner.execute("update accounts set plan = $1 where id = $2", plan, tenant.account_id)


class Book:
    """Starts and reads runs of one account."""

    def __init__(self, session, owner, tenant):
        self.session = session
        self.runs = PostgresRuns(session)
        self.owner = owner
        self.tenant = tenant

    async def start(self, *, kind=KIND, queue="hot", run_id=None, beside=None, **subject):
        """``run_id``: id of a run that may exist already. ``beside``: called with the run's id in the same
        transaction."""
        new = NewRun(
            account_id=self.tenant.account_id,
            id=run_id or RunId(uuid.uuid4()),
            kind=kind,
            subject=subject,
            credits_held=5,
            transaction_type="analysis",
            queue=queue,
        )
        async with self.session.transaction():
            started = await self.runs.start(new)
            assert started.outcome == "started" or (started.outcome == "repeated" and run_id)
            if beside is not None:
                await beside(new.id)
        return new.id

    async def find(self, run_id):
        return await self.runs.find(self.tenant.account_id, run_id)

    async def in_engine(self, run_id):
        return await self.owner.fetchval(
            "select status from dbos.workflow_status where workflow_uuid = $1", str(run_id)
        )

    async def cancel(self, run_id):
        return (await self.runs.request_cancel(self.tenant.account_id, run_id))[0]

    async def notes(self, run_id):
        rows = await self.owner.fetch("select place from oslira.notes where run_id = $1 order by at", run_id)
        return [row["place"] for row in rows]

    async def noted(self, run_ids, place):
        """Wait until each of the runs has reached the place."""

        async def all_noted():
            rows = await self.owner.fetch(
                "select distinct run_id from oslira.notes where place = $1 and run_id = any ($2)",
                place,
                run_ids,
            )
            return len(rows) == len(run_ids)

        await until(all_noted, timeout_s=90)

    async def ended(self, run_ids):
        async def all_ended():
            return all([(await self.find(run_id)).is_ended for run_id in run_ids])

        await until(all_ended, timeout_s=90)

    async def all_charged_once(self):
        """True when the ledger audit is clean, no credits are held, and the balance matches the charges."""
        findings = await self.owner.fetch("select * from ledger.audit()")
        row = await self.owner.fetchrow(
            """
            select a.credits_available, a.credits_held, (
                select coalesce(sum(r.credits_charged), 0) from runs as r where r.account_id = a.account_id
            ) as charged
            from credit_accounts as a where a.account_id = $1
            """,
            self.tenant.account_id,
        )
        return not findings and tuple(row) == (CREDITS - row["charged"], 0, row["charged"])


@pytest.fixture(scope="module")
async def engine_addresses(cluster, template):
    """Separate database for the worker processes of a module."""
    async with copy_of(cluster, template) as addresses:
        connection = await asyncpg.connect(addresses.owner)
        await connection.execute(NOTES)
        await connection.close()
        yield addresses


@pytest.fixture(scope="module")
def engine_place(engine_addresses, tmp_path_factory):
    return read_runtime(
        {
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": engine_addresses.owner,
            "OSLIRA_DATA_DIR": str(tmp_path_factory.mktemp("data")),
        }
    )


@pytest.fixture(scope="module")
async def engine_owner(engine_addresses):
    connection = await asyncpg.connect(engine_addresses.owner)
    yield connection
    await connection.close()


@pytest.fixture(scope="module")
async def make_book(engine_addresses, engine_owner):
    """Factory of accounts with credits."""
    async with dual_client(engine_addresses) as database:

        async def make(runs_at_once=100):
            tenant = await make_tenant(engine_owner)
            await on_plan(engine_owner, tenant, runs_at_once)
            await engine_owner.execute(
                "select ledger.grant_credits($1, $2, 'g', 'purchase')", tenant.account_id, CREDITS
            )
            return Book(database.admin("tests"), engine_owner, tenant)

        yield make


@pytest.fixture
async def book(make_book):
    return await make_book()


@pytest.fixture
async def workers(engine_addresses, tmp_path):
    workers = Workers(engine_addresses, tmp_path)
    yield workers
    await workers.end_all()
