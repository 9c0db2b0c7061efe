import uuid

import pytest

from infrastructure.database.runs.runs import PostgresRuns
from infrastructure.database.runs.workers import PostgresWorkerRegistry
from tests.conftest import make_tenant


@pytest.fixture
def session(database):
    return database.admin("tests")


@pytest.fixture
def runs(session):
    return PostgresRuns(session)


@pytest.fixture
def registry(session):
    return PostgresWorkerRegistry(session)


@pytest.fixture
async def executor(registry):
    """The name of a registered worker process."""
    name = str(uuid.uuid4())
    await registry.register(name, host="here", queues=["tests"])
    return name


@pytest.fixture
def make_rich(owner):
    """A function: an account with a hundred credits that may have many concurrent runs."""

    async def make():
        tenant = await make_tenant(owner)
        await owner.execute("select ledger.grant_credits($1, 100, 'g', 'admin_grant')", tenant.account_id)
        await owner.execute("update accounts set plan = 'enterprise' where id = $1", tenant.account_id)
        return tenant

    return make


@pytest.fixture
async def rich(make_rich):
    return await make_rich()
