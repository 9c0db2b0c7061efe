import anthropic  # noqa: F401  slow imports, outside the tests' deadlines
import openai  # noqa: F401
import pytest

import infrastructure.ai.providers.sdk_clients
import infrastructure.scraping.apify_runs  # noqa: F401
from core.wiring.cost_recorders import open_cost_recorders
from infrastructure.database.costs.price_file import load_prices, read_price_list
from tests.conftest import make_tenant
from tests.system.providers.world import Outside


@pytest.fixture(scope="session")
async def books(addresses, database):
    await load_prices(addresses.owner, read_price_list())
    async with open_cost_recorders(database) as books:
        yield books


@pytest.fixture(scope="session")
async def account_id(owner):
    return (await make_tenant(owner)).account_id


@pytest.fixture
async def outside(simulators, database, books, tmp_path, account_id):
    outside = Outside(simulators, database, books, tmp_path / "objects", account_id)
    yield outside
    await outside.close()


@pytest.fixture
def model_rows(owner, outside):
    """Returns a function that reads the usage records of this run's model calls, in order."""

    async def rows(run_id=None):
        return await owner.fetch(
            "select * from ai_usage_logs where run_id = $1 order by created_at, attempt",
            run_id or outside.cost_owner.run_id,
        )

    return rows


@pytest.fixture
def scrape_rows(owner, outside):
    """Returns a function that reads the records of this run's scrapes, in order."""

    async def rows():
        return await owner.fetch(
            "select * from scrape_logs where run_id = $1 order by created_at", outside.cost_owner.run_id
        )

    return rows
