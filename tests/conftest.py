"""Shared fixtures: a real PostgreSQL, a fresh migrated database, and the application on top of it."""

import gc
import hashlib
import os
import uuid
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

import asyncpg
import httpx
import pytest

from core.app import create_app
from core.engine.schema import GRANTS, migrate_engine
from core.wiring.application import build
from core.wiring.bootstrap import DatabaseUrls, local_issuer, read_runtime
from infrastructure.database.embedded_postgres import OPTIONS, EmbeddedPostgres
from infrastructure.database.migrate import migrate, read_migrations
from shared.caller import Caller
from shared.ids import AccountId, UserId
from tests.support import Tenant, claims_of, dual_client, register_worker
from tests.support.optional_programs import probe
from tests.support.shared_openapi_document import share_documents
from tests.support.simulated import simulated_providers
from tests.support.supabase_defaults import API_ROLES, DEFAULT_PRIVILEGES

pytest_plugins = ["tests.support.application"]
PROJECT = Path(__file__).parents[1]
# A test database may lose data in a power cut.
QUICK = ("max_connections=600", "fsync=off", "synchronous_commit=off", "full_page_writes=off")

# Collected tests are not garbage: repeated collections over ten thousand of them take a fifth of the time.
gc.set_threshold(100_000, 50, 50)


def pytest_collection_finish():
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    for marker in item.iter_markers("needs_program"):
        path, reason = probe(*marker.args)
        if path is None:
            pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def one_document():
    with pytest.MonkeyPatch.context() as monkeypatch:
        share_documents(monkeypatch)
        yield


@pytest.fixture(scope="session")
def cluster():
    server = EmbeddedPostgres(PROJECT / ".data" / "tests" / "postgres", options=OPTIONS + QUICK)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
async def template(cluster):
    """A migrated database to copy, with Supabase's default privileges; created again only after a migration
    has changed.
    """
    supabase = API_ROLES + DEFAULT_PRIVILEGES
    texts = "".join([version("dbos"), supabase, GRANTS, *(migration.sql for migration in read_migrations())])
    name = f"template_{hashlib.sha256(texts.encode()).hexdigest()[:16]}"
    connection = await asyncpg.connect(cluster.url("postgres"))
    await connection.execute("select pg_advisory_lock(1)")  # parallel test processes share it
    if not await connection.fetchval("select true from pg_database where datname = $1", name):
        draft = f"draft_{uuid.uuid4().hex}"
        await connection.execute(f'create database "{draft}"')
        await _execute(cluster.url(draft), supabase)
        await migrate(cluster.url(draft))
        await migrate_engine(cluster.url(draft))
        await connection.execute(f'alter database "{draft}" rename to "{name}"')
    await connection.close()
    return name


async def _execute(url, statements):
    connection = await asyncpg.connect(url)
    await connection.execute(statements)
    await connection.close()


@asynccontextmanager
async def copy_of(cluster, template):
    name = f"t_{uuid.uuid4().hex[:12]}"
    connection = await asyncpg.connect(cluster.url("postgres"))
    # wal_log, because a copy of files waits for a checkpoint and so for the writes of all other processes.
    await connection.execute(f'create database "{name}" template "{template}" strategy wal_log')
    try:
        yield DatabaseUrls(
            owner=cluster.url(name), user=cluster.url(name, "app_user"), admin=cluster.url(name, "app_admin")
        )
    finally:
        await connection.execute(f'drop database "{name}" with (force)')
        await connection.close()


@pytest.fixture(scope="session")
async def addresses(cluster, template):
    """The database of this test session."""
    async with copy_of(cluster, template) as addresses:
        connection = await asyncpg.connect(addresses.owner)
        # Rate limits must not slow tests down; tests of the limits set their own.
        await connection.execute("update rate_limits set requests_max = 1000000000")
        await register_worker(connection)  # so that health checks find a worker
        await connection.close()
        yield addresses


@pytest.fixture
async def spoilable_addresses(cluster, template):
    """A database for one test that leaves it in an invalid state."""
    async with copy_of(cluster, template) as addresses:
        yield addresses


@pytest.fixture(scope="session")
async def database(addresses):
    async with dual_client(addresses) as database:
        yield database


@pytest.fixture(scope="session")
async def owner(addresses):
    """A connection of the tables' owner, who sees all rows, for set-up and assertions."""
    connection = await asyncpg.connect(addresses.owner)
    yield connection
    await connection.close()


@pytest.fixture(scope="session")
def place(addresses, tmp_path_factory):
    """A local environment on the test database."""
    return read_runtime(
        {
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": addresses.owner,
            "OSLIRA_DATA_DIR": str(tmp_path_factory.mktemp("data")),
        }
    )


@pytest.fixture(scope="session")
async def application(place):
    async with build(place) as application:
        yield application


def client_for(application):
    # Not Litestar's AsyncTestClient: it runs the application on its own event loop, away from our pool.
    transport = httpx.ASGITransport(create_app(application), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://test")


@pytest.fixture(scope="session")
async def client(application):
    async with client_for(application) as client:
        yield client


@pytest.fixture(scope="session")
async def simulator_process(tmp_path_factory):
    async with simulated_providers(tmp_path_factory.mktemp("simulators")) as providers:
        yield providers


@pytest.fixture
async def simulators(simulator_process):
    """All simulated providers, without faults, latency or counted requests."""
    yield simulator_process
    await simulator_process.reset()


@pytest.fixture
def token(place):
    """A function: an e-mail address (a new one by default) to an access token."""

    def sign(email=None, *, lifetime=timedelta(hours=1), is_operator=False):
        email = email or f"{uuid.uuid4().hex}@example.com"
        return local_issuer(place.settings).token(email, lifetime=lifetime, is_operator=is_operator)

    return sign


@pytest.fixture
def bearer(token):
    """A function: the same token as headers."""
    return lambda *args, **options: {"Authorization": f"Bearer {token(*args, **options)}"}


@pytest.fixture
async def tenant(owner):
    """A new account with one member and no credits."""
    return await make_tenant(owner)


@pytest.fixture
async def other_tenant(owner):
    return await make_tenant(owner)


async def make_tenant(owner):
    user_id = UserId(uuid.uuid4())
    await owner.execute("select private.sign_up_if_new($1, $2, 'Test', 0)", user_id, f"{user_id}@example.com")
    account_id = await owner.fetchval("select account_id from sign_ups where user_id = $1", user_id)
    claims = claims_of(user_id)
    return Tenant(
        account_id=AccountId(account_id),
        caller=Caller(id=user_id, claims=claims),
    )


os.environ.setdefault("OSLIRA_ENVIRONMENT", "local")  # for processes that tests start
os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")  # no test calls the cloud's metadata service
