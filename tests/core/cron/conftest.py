import asyncpg
import pytest

from infrastructure.database.operations.cron import PostgresCron
from tests.conftest import copy_of
from tests.support import dual_client


@pytest.fixture(scope="package")
async def cron_addresses(cluster, template):
    """A database for jobs alone: they are about everybody in it."""
    async with copy_of(cluster, template) as addresses:
        connection = await asyncpg.connect(addresses.owner)
        # As if it had been there for long.
        await connection.execute("update oslira.migrations set applied_at = '2000-01-01'")
        await connection.close()
        yield addresses


@pytest.fixture(scope="package")
async def cron_owner(cron_addresses):
    connection = await asyncpg.connect(cron_addresses.owner)
    yield connection
    await connection.close()


@pytest.fixture(scope="package")
async def cron_database(cron_addresses):
    async with dual_client(cron_addresses) as database:
        yield database


@pytest.fixture(scope="package")
async def other_database(cron_addresses):
    """The same as another process sees it."""
    async with dual_client(cron_addresses) as database:
        yield database


@pytest.fixture
def cron(cron_database):
    return PostgresCron(cron_database.admin("tests"))
