"""The API of all slices as one ``Application``."""

import dataclasses
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from core.api.health import Health, HealthCheck, Mode
from core.api.health_checks import (
    check_engine,
    check_migrations,
    check_object_store,
    check_plaintext_hosts,
    check_rate_limits,
    check_roles,
    check_secrets,
    check_sentry,
)
from core.processes.background import running_services
from core.settings.settings import Settings
from core.wiring.bootstrap import Runtime
from core.wiring.providers import provider_health_checks
from core.wiring.resources import open_resources
from core.wiring.slice import ApiParts, Resources, Slice, merged, migration_folders
from core.wiring.slices import SLICES
from infrastructure.database.health_checks import DatabaseHealthChecks
from infrastructure.database.http.idempotency_keys import PostgresIdempotencyKeys
from infrastructure.database.http.rate_limits import PostgresLimits, PostgresWindows
from infrastructure.database.http.request_log import PostgresRequestLog
from infrastructure.database.migrate import read_migrations
from infrastructure.rate_limits.windows import MemoryWindows, WindowStore
from shared.middleware.idempotency import Idempotency
from shared.middleware.rate_limits import RateLimits
from shared.middleware.request_log import Record

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """``dependencies`` are the use cases of all slices, by the parameter names of the handlers."""

    resources: Resources
    settings: Settings
    dependencies: Mapping[str, object]
    rate_limits: RateLimits
    poll_limits: RateLimits  # for polls without a change; counted per process
    idempotency: Idempotency
    record_request: Record
    health: Health

    def get(self, use_case: type[T]) -> T:
        """Return the dependency of this class. Raises StopIteration if there is none."""
        return next(value for value in self.dependencies.values() if isinstance(value, use_case))

    def replacing(self, **dependencies: object) -> "Application":
        """Return a copy with some other dependencies, for tests."""
        return dataclasses.replace(self, dependencies={**self.dependencies, **dependencies})


@asynccontextmanager
async def build(runtime: Runtime, slices: tuple[Slice, ...] = SLICES) -> AsyncGenerator[Application]:
    async with open_resources(runtime, slices) as resources:
        parts = [slice_.api(resources) for slice_ in slices]
        async with running_services(merged(part.services for part in parts)):
            yield _application(resources, parts)


def _application(resources: Resources, parts: list[ApiParts]) -> Application:
    settings, database, closing = resources.runtime.settings, resources.database, resources.closing
    limits = PostgresLimits(database)
    windows = MemoryWindows() if settings.rate_limit_store == "memory" else PostgresWindows(database)
    keys, requests = PostgresIdempotencyKeys(database), PostgresRequestLog(database)
    for store in (windows, requests):
        closing.push_async_callback(store.close)
    checks = [_infrastructure_checks(resources, windows), *(part.health_checks for part in parts)]
    essential = frozenset({"database", "migrations", "role_separation"})
    return Application(
        resources=resources,
        settings=settings,
        dependencies=merged(part.dependencies for part in parts),
        rate_limits=RateLimits(limits, windows),
        poll_limits=RateLimits(limits, MemoryWindows()),
        idempotency=Idempotency(keys),
        record_request=requests.record,
        health=Health(settings.environment, merged(checks), essential),
    )


def _infrastructure_checks(resources: Resources, windows: WindowStore) -> dict[str, HealthCheck]:
    settings = resources.runtime.settings
    return {
        **_database_checks(resources),
        "rate_limits": HealthCheck(
            "local" if settings.embedded_database or settings.rate_limit_store == "memory" else "real",
            partial(check_rate_limits, windows),
        ),
        **_service_checks(resources),
        **provider_health_checks(settings, resources.providers.gateway),
    }


def _database_checks(resources: Resources) -> dict[str, HealthCheck]:
    migrations = read_migrations(slice_folders=migration_folders(resources.slices))
    database = DatabaseHealthChecks(resources.database, migrations)
    mode: Mode = "local" if resources.runtime.settings.embedded_database else "real"
    return {
        "database": HealthCheck(mode, database.version),
        "migrations": HealthCheck(mode, partial(check_migrations, database)),
        "role_separation": HealthCheck(mode, partial(check_roles, database)),
        "engine": HealthCheck(mode, partial(check_engine, database, resources.engine)),
    }


def _service_checks(resources: Resources) -> dict[str, HealthCheck]:
    settings, secrets = resources.runtime.settings, resources.runtime.secrets
    dsn, hosts = settings.sentry_dsn, settings.plaintext_hosts
    checks = {
        "object_store": HealthCheck(
            "real" if settings.object_store_bucket else "local",
            partial(check_object_store, resources.providers.objects),
        ),
        "secrets": HealthCheck("real" if secrets else "local", partial(check_secrets, secrets)),
        "sentry": HealthCheck("real" if dsn else "local", partial(check_sentry, dsn)),
    }
    if hosts:
        checks["plaintext_hosts"] = HealthCheck("real", partial(check_plaintext_hosts, hosts))
    return checks
