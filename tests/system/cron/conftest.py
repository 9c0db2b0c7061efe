import asyncpg
import pytest

from infrastructure.database.operations.cron import PostgresCron
from tests.conftest import copy_of
from tests.support import dual_client


@pytest.fixture(scope="package")
async def cron_addresses(cluster, template):
    """Separate database for cron jobs, because they process all accounts in it."""
    async with copy_of(cluster, template) as addresses:
        connection = await asyncpg.connect(addresses.owner)
        # Simulates an old installation: slots before the installation are not caught up.
        await connection.execute("update scheduling.settings set catch_up_since = '2000-01-01'")
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
    """Second client of the same database, in place of another process."""
    async with dual_client(cron_addresses) as database:
        yield database


@pytest.fixture
def cron(cron_database):
    return PostgresCron(cron_database.admin("tests"))
