import dataclasses
import uuid
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest

from core.engine.engine import running_engine
from core.engine.workflow import Workflow
from core.wiring.bootstrap import read_runtime
from tests.conftest import copy_of, make_tenant
from tests.support import dual_client, until
from tests.system.engine.conftest import on_plan
from tests.system.engine.history import Listener
from tests.system.workflows.analysis_starter import CREDITS, NEW_BUSINESS, Desk
from tests.system.workflows.world import HaltingAnalyst, opened


@pytest.fixture(scope="module")
async def firm_addresses(cluster, template):
    """Separate database for the engine of a module."""
    async with copy_of(cluster, template) as addresses:
        yield addresses


@pytest.fixture(scope="module")
async def firm_owner(firm_addresses):
    connection = await asyncpg.connect(firm_addresses.owner)
    yield connection
    await connection.close()


@pytest.fixture(scope="module")
async def firm_database(firm_addresses):
    async with dual_client(firm_addresses) as database:
        yield database


@pytest.fixture(scope="module")
def make_desk(firm_database, firm_owner):
    """Factory of accounts with credits and a business profile."""

    async def make(*, credits_granted=CREDITS, runs_at_once=100, followers_min=None):
        tenant = await make_tenant(firm_owner)
        await on_plan(firm_owner, tenant, runs_at_once)
        if credits_granted:
            await firm_owner.execute(
                "select ledger.grant_credits($1, $2, 'g', 'purchase')", tenant.account_id, credits_granted
            )
        business_id = uuid.uuid4()
        await firm_owner.execute(NEW_BUSINESS, tenant.account_id, business_id, followers_min)
        return Desk(firm_database.admin("tests"), firm_owner, tenant, business_id)

    return make


@pytest.fixture
async def desk(make_desk):
    return await make_desk()


class Firm(NamedTuple):
    """``listeners`` record, by kind, the steps that runs have called."""

    analyst: HaltingAnalyst
    go_on: Path
    listeners: dict[str, Listener]

    async def halted(self, run_id):
        """Wait until the run has halted at its place."""
        await until(self.go_on.with_name(str(run_id)).exists)


@pytest.fixture(scope="module")
async def firm(firm_addresses, simulator_process, tmp_path_factory):
    """Running engine in this process."""
    folder = tmp_path_factory.mktemp("firm")
    place = read_runtime(
        {"OSLIRA_ENVIRONMENT": "local", "DATABASE_URL": firm_addresses.owner, "OSLIRA_DATA_DIR": str(folder)}
    )
    go_on, listeners = folder / "go-on", {}
    async with (
        opened(place, simulator_process.address, go_on=go_on) as (parts, analyst),
        running_engine(listened(parts, listeners)),
    ):
        yield Firm(analyst, go_on, listeners)


def listened(parts, listeners):
    listeners |= {workflow.kind: Listener(workflow) for workflow in parts.workflows}
    workflows = tuple(Workflow(kind, listener.execute) for kind, listener in listeners.items())
    return dataclasses.replace(parts, workflows=workflows)


@pytest.fixture
def at_work(firm, simulators):  # noqa: ARG001  resets the simulators' faults
    """Running engine whose providers answer and whose recorded calls are empty."""
    yield firm
    firm.analyst.reset()
    for listener in firm.listeners.values():
        listener.asked.clear()
    firm.go_on.unlink(missing_ok=True)
