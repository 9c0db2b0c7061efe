import uuid

import pytest

from infrastructure.database.runs import PostgresRuns
from infrastructure.database.workers import PostgresWorkerRegistry


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
    """A name under which a process is known to work."""
    name = str(uuid.uuid4())
    await registry.enlist(name, host="here", queues=["tests"])
    return name


@pytest.fixture
async def rich(owner, tenant):
    await owner.execute("select ledger.grant_credits($1, 100, 'g', 'admin_grant')", tenant.account_id)
    await owner.execute("update accounts set plan = 'enterprise' where id = $1", tenant.account_id)
    return tenant
