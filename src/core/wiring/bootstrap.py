"""Process start-up: settings, database addresses, logs, migrations and the database connection."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from core.engine.schema import migrate_engine
from core.settings.rotation import RotatingSettings
from core.settings.settings import SECRETS, InvalidSettings, Lookup, Settings, read_settings
from infrastructure.database.clients import Database, connect
from infrastructure.database.costs.price_file import load_prices, read_price_list
from infrastructure.database.embedded_postgres import embedded_postgres
from infrastructure.database.migrate import MigrationsDiffer, migrate
from infrastructure.database.urls import ADMIN_ROLE, USER_ROLE, role_url
from infrastructure.identity.tokens import LocalIssuer
from infrastructure.monitoring.logs import configure_logs
from infrastructure.secrets.aws import AwsSecrets, NoRegion
from simulators.process import serve_simulators

DATABASE_NAME = "oslira"


def ignore_step(_: str) -> None:
    """Default of ``Runtime.report_step``: only `oslira run` shows the steps of the start."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The settings of this process and the source they were read from."""

    settings: Settings
    lookup: Lookup
    secrets: AwsSecrets | None
    report_step: Callable[[str], None] = ignore_step

    def rotating_settings(self) -> RotatingSettings:
        return RotatingSettings(self.settings, self.lookup if self.secrets is not None else None)


def read_runtime(environ: Mapping[str, str]) -> Runtime:
    """Read the settings. Raises InvalidSettings with the complete list of variables to set."""
    prefix = environ.get("OSLIRA_SECRETS_PREFIX", "")
    try:
        secrets = AwsSecrets(environ, prefix=prefix, names=SECRETS) if prefix else None
    except NoRegion:
        error = "AWS_DEFAULT_REGION: OSLIRA_SECRETS_PREFIX needs the region of Secrets Manager."
        raise InvalidSettings(environ.get("OSLIRA_ENVIRONMENT", "local"), [error]) from None
    lookup = secrets.lookup if secrets else environ.get
    return Runtime(settings=read_settings(lookup), lookup=lookup, secrets=secrets)


def start_logs(settings: Settings, *, level: int = logging.INFO) -> None:
    configure_logs(as_json=not settings.is_local, level=level)


def local_issuer(settings: Settings) -> LocalIssuer:
    identity = settings.identity
    return LocalIssuer(settings.data_dir / "identity", issuer=identity.issuer, audience=identity.audience)


async def run_simulators(settings: Settings, port: int, *, latency_scale: float) -> None:
    """Serve the simulated providers until SIGTERM or SIGINT."""
    await serve_simulators(
        settings.data_dir,
        local_issuer(settings),
        port=port,
        until_stdin_ends=False,
        latency_scale=latency_scale,
    )


@dataclass(frozen=True, slots=True)
class DatabaseUrls:
    """The three addresses of the database. ``owner`` is empty if only the addresses of the two roles are
    configured.
    """

    owner: str
    user: str
    admin: str


def _configured_addresses(settings: Settings) -> DatabaseUrls:
    owner = settings.database_url
    return DatabaseUrls(
        owner=owner,
        user=settings.database_user_url or role_url(owner, USER_ROLE),
        admin=settings.database_admin_url or role_url(owner, ADMIN_ROLE),
    )


@asynccontextmanager
async def database_addresses(settings: Settings) -> AsyncGenerator[DatabaseUrls]:
    """Yields the configured database, or an embedded server that runs until its last user closes it."""
    if not settings.embedded_database:
        yield _configured_addresses(settings)
        return
    async with embedded_postgres(settings.data_dir / "postgres", DATABASE_NAME) as server:
        yield DatabaseUrls(
            owner=server.url(DATABASE_NAME),
            user=server.url(DATABASE_NAME, USER_ROLE),
            admin=server.url(DATABASE_NAME, ADMIN_ROLE),
        )


async def apply_migrations(
    settings: Settings, addresses: DatabaseUrls, slice_folders: Mapping[str, Path]
) -> tuple[list[str], int]:
    """Returns the names of the applied migrations and the number of new prices. Our schema is migrated first,
    because it creates the roles that the engine's schema is granted to.
    """
    try:
        names = await migrate(
            addresses.owner, set_passwords=not settings.database_user_url, slice_folders=slice_folders
        )
    except MigrationsDiffer as error:
        if not settings.embedded_database:
            raise
        remedy = f"Or start with an empty database: delete the folder {settings.data_dir} with all its data."
        raise MigrationsDiffer(f"{error} {remedy}") from None
    engine = await migrate_engine(addresses.owner)
    prices_count = await load_prices(addresses.owner, read_price_list())
    return (names if engine is None else [*names, engine]), prices_count


async def current_addresses(runtime: Runtime, addresses: DatabaseUrls) -> DatabaseUrls:
    """Reads the settings for each connection, because the secret may have been rotated."""
    if runtime.secrets is None or runtime.settings.embedded_database:
        return addresses
    return _configured_addresses(await asyncio.to_thread(read_settings, runtime.lookup))


@asynccontextmanager
async def open_database(runtime: Runtime, addresses: DatabaseUrls) -> AsyncGenerator[Database]:
    async def user_url() -> str:
        return (await current_addresses(runtime, addresses)).user

    async def admin_url() -> str:
        return (await current_addresses(runtime, addresses)).admin

    async with connect(
        user_url=user_url,
        admin_url=admin_url,
        pool_size=runtime.settings.database_pool_size,
        statement_cache=runtime.settings.database_pooler == "session",
    ) as database:
        yield database
