"""Database connections of the wired application, and rotation of their addresses."""

import pytest

from core.settings.settings import read_settings
from core.wiring.application import build
from core.wiring.bootstrap import Runtime, read_runtime
from tests.conftest import make_tenant


class RotatingSecrets:
    """Secrets Manager whose values a test can change."""

    failure = None

    def __init__(self, **values):
        self.values = values

    def lookup(self, name):
        return self.values.get(name)


@pytest.fixture
def data_dir(tmp_path):
    return str(tmp_path)


async def database_of(application):
    """Name of the database that a new admin connection connects to."""
    session = application.dependencies["credit_maintenance"].ledger._session  # noqa: SLF001
    for connection in session._pool._idle:  # noqa: SLF001
        connection.terminate()
    (row,) = await session.fetch("select current_database()::text as name")
    return row["name"]


async def test_the_two_roles_addresses_are_enough_to_serve(addresses, owner, data_dir):
    tenant = await make_tenant(owner)
    place = read_runtime(
        {
            "OSLIRA_ENVIRONMENT": "local",
            "OSLIRA_DATABASE_USER_URL": addresses.user,
            "OSLIRA_DATABASE_ADMIN_URL": addresses.admin,
            "OSLIRA_DATA_DIR": data_dir,
        }
    )

    async with build(place) as application:
        assert (
            await application.dependencies["balances"].current(tenant.caller)
        ).account_id == tenant.account_id
        assert (await application.health.readiness()).status != "not_ready"


async def test_a_rotated_address_is_taken_up_by_the_next_connection(addresses, spoilable_addresses, data_dir):
    secrets = RotatingSecrets(
        OSLIRA_ENVIRONMENT="local", DATABASE_URL=addresses.owner, OSLIRA_DATA_DIR=data_dir
    )
    place = Runtime(settings=read_settings(secrets.lookup), lookup=secrets.lookup, secrets=secrets)

    async with build(place) as application:
        before = await database_of(application)
        secrets.values["DATABASE_URL"] = spoilable_addresses.owner

        after = await database_of(application)

    assert f"/{before}?" in addresses.owner
    assert f"/{after}?" in spoilable_addresses.owner
