import contextlib
import io
import logging
import uuid

import asyncpg
import pytest
import structlog

from core.wiring.application import build
from core.wiring.bootstrap import local_issuer, read_runtime
from infrastructure.monitoring.logs import configure_logs
from tests.conftest import copy_of
from tests.system.canaries.journey import Journey
from tests.system.canaries.net import Canaries, everything_kept

PROVIDER_KEYS = {
    "OPENAI_API_KEY": "sk-proj-",
    "ANTHROPIC_API_KEY": "sk-ant-api03-",
    "APIFY_TOKEN": "apify_api_",
    "STRIPE_SECRET_KEY": "sk_live_",
    "SUPABASE_SERVICE_ROLE_KEY": "sb_secret_",
}


@contextlib.contextmanager
def real_logs():
    """Configures logging as in production, but without cached loggers, so that the test can restore it."""
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level, stderr = root.handlers[:], root.level, io.StringIO()
    with contextlib.redirect_stderr(stderr):
        configure_logs(as_json=True)
    structlog.configure(cache_logger_on_first_use=False)
    yield stderr
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)


def with_passwords(addresses, journey):
    """Adds passwords to the database URLs; the test server accepts any."""
    names = {
        "DATABASE_URL": addresses.owner,
        "OSLIRA_DATABASE_USER_URL": addresses.user,
        "OSLIRA_DATABASE_ADMIN_URL": addresses.admin,
    }
    for name, address in names.items():
        password = uuid.uuid4().hex
        journey.canaries.keep(f"password of {name}", password)
        journey.wholes[f"password of {name}"] = names[name] = address.replace("@", f":{password}@", 1)
    return names


def provider_keys(journey):
    return {name: journey.keep(name, prefix + uuid.uuid4().hex) for name, prefix in PROVIDER_KEYS.items()}


def signing_key(journey):
    pem = (journey.place.settings.data_dir / "identity" / "es256.pem").read_text()
    journey.keep("signing key", pem, "".join(pem.splitlines()[1:-1]))


@pytest.fixture(scope="package")
async def journey(cluster, template, tmp_path_factory):
    """Runs the journey and collects its responses, log lines and rows."""
    journey = Journey(None, None, Canaries(), {})
    async with copy_of(cluster, template) as addresses:
        owner = await asyncpg.connect(addresses.owner)
        await owner.execute("update rate_limits set requests_max = 1000000000")
        place = {"OSLIRA_ENVIRONMENT": "local", "OSLIRA_DATA_DIR": str(tmp_path_factory.mktemp("canaries"))}
        environ = {
            **with_passwords(addresses, journey),
            **provider_keys(journey),
            **place,
            # An external Supabase project, but with tokens that the test can sign.
            "SUPABASE_URL": "https://project.test",
            "OSLIRA_JWT_PUBLIC_KEY": local_issuer(read_runtime(place).settings).public_key,
        }
        journey.place = read_runtime(environ)
        with real_logs() as stderr:
            async with build(journey.place) as journey.application:
                await travel(journey, owner, cluster)
            journey.kept = await everything_kept(owner)
        await owner.close()
        journey.logged = stderr.getvalue()
    return journey


async def travel(journey, owner, cluster):
    signing_key(journey)
    async with journey.client() as client:
        ada = await journey.through_front_doors(client)
        await journey.through_wrong_doors(client, ada)
        await journey.through_failures(ada)
        async with away(owner, cluster):
            await journey.without_database(client, ada)


@contextlib.asynccontextmanager
async def away(owner, cluster):
    """Rejects new connections to the database and terminates those of the application."""
    name = await owner.fetchval("select current_database()")
    beside = await asyncpg.connect(cluster.url("postgres"))
    await beside.execute(f'alter database "{name}" with allow_connections false')
    await beside.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = $1 and usename in ('app_user', 'app_admin')",
        name,
    )
    yield
    await beside.execute(f'alter database "{name}" with allow_connections true')
    await beside.close()
