"""A configured PostgreSQL: Debian's, with passwords and an owner that is not a superuser."""

import uuid
from urllib.parse import urlsplit

import asyncpg
import pytest

from core.wiring.application import build
from core.wiring.bootstrap import read_runtime
from infrastructure.database.embedded_postgres import OPTIONS, EmbeddedPostgres
from infrastructure.database.migrate import MigrationFailed, migrate
from infrastructure.database.urls import role_password, role_url
from shared.caller import Caller
from shared.ids import UserId
from tests.integration.database.test_schema import RULES
from tests.support import claims_of
from tests.support.optional_programs import path_of
from tests.support.supabase_defaults import API_ROLES, AUTH_SCHEMA, DEFAULT_PRIVILEGES

needs_postgres = pytest.mark.needs_program("postgres")


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    server = EmbeddedPostgres(
        tmp_path_factory.mktemp("debian") / "postgres",
        binaries=path_of("postgres").resolve().parent,
        options=(*OPTIONS, "fsync=off"),
    )
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def owner_url(debian):
    """A database like Supabase's: its owner is not a superuser but bypasses row level security, ``auth``
    belongs to another role, and the Data API's roles have every privilege by default.
    """
    name = f"o_{uuid.uuid4().hex[:12]}"
    superuser = await asyncpg.connect(debian.url("postgres"))
    await superuser.execute(f"""
        create role {name} login createrole bypassrls password 'owner''s password';
        {API_ROLES}
        grant anon, authenticated, service_role to {name} with admin option;
    """)
    await superuser.execute(f"create database {name} owner {name}")
    await superuser.close()
    await execute(debian.url(name), f"{AUTH_SCHEMA} grant usage on schema auth to {name};")
    url = debian.url(name, f"{name}:owner%27s%20password")
    await execute(url, DEFAULT_PRIVILEGES)
    return url


async def execute(url, statements):
    connection = await asyncpg.connect(url)
    await connection.execute(statements)
    await connection.close()


@needs_postgres
async def test_whole_system_runs_on_a_configured_server(owner_url, tmp_path):
    await migrate(owner_url)
    place = read_runtime(
        {"OSLIRA_ENVIRONMENT": "local", "DATABASE_URL": owner_url, "OSLIRA_DATA_DIR": str(tmp_path)}
    )
    user_id = UserId(uuid.uuid4())
    caller = Caller(id=user_id, claims=claims_of(user_id))

    async with build(place) as application:
        await application.dependencies["authenticator"].sign_ups.sign_up_if_new(
            user_id, email="a@example.com", account_name="A", bonus_credits=25
        )
        balance = await application.dependencies["balances"].current(caller)
        readiness = await application.health.readiness()

        assert balance.credits_available == 25
        idle = {name for name, binding in readiness.bindings.items() if not binding.ok}
        assert idle == {"engine"}, readiness  # no worker runs yet
        assert readiness.bindings["database"].detail.startswith("PostgreSQL ")
        assert await application.dependencies["credit_maintenance"].audit() == []


@needs_postgres
async def test_data_api_roles_have_no_privilege_where_supabase_granted_all(owner_url):
    await migrate(owner_url)

    connection = await asyncpg.connect(owner_url)
    found = {rule: await connection.fetch(query) for rule, query in RULES.items()}
    await connection.close()

    assert [rule for rule, rows in found.items() if rows] == []


@needs_postgres
async def test_app_user_needs_no_privilege_on_supabases_auth_schema(owner_url):
    await migrate(owner_url)
    user_id = uuid.uuid4()
    await execute(owner_url, f"select private.sign_up_if_new('{user_id}', 'a@example.com', 'A', 0)")

    connection = await asyncpg.connect(role_url(owner_url, "app_user"))
    role = await connection.fetchval("select role from caller.membership($1, null)", claims_of(user_id))
    may_use_auth = await connection.fetchval("select has_schema_privilege('auth', 'usage')")
    await connection.close()

    assert (role, may_use_auth) == ("owner", False)


@needs_postgres
async def test_owner_under_row_level_security_gets_an_error_with_instructions(owner_url, debian):
    name = urlsplit(owner_url).username
    superuser = await asyncpg.connect(debian.url("postgres"))
    await superuser.execute(f"alter role {name} nobypassrls")
    await superuser.close()

    with pytest.raises(MigrationFailed, match=f'alter role "{name}" bypassrls'):
        await migrate(owner_url)


def test_role_addresses_are_derived_from_the_owners():
    owner = "postgresql://postgres.project:secret@db.example.com:6543/postgres?sslmode=require"

    user = urlsplit(role_url(owner, "app_user"))

    assert (user.username, user.hostname, user.port) == ("app_user.project", "db.example.com", 6543)
    assert user.password == role_password(owner, "app_user") != role_password(owner, "app_admin")
    assert "secret" not in user.geturl()
    assert (user.path, user.query) == ("/postgres", "sslmode=require")
