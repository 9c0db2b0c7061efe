"""Database queries of the health checks."""

from datetime import timedelta
from typing import LiteralString

import msgspec

from infrastructure.database.clients import Database
from infrastructure.database.migrate import APPLIED, Migration

VERSION: LiteralString = "select current_setting('server_version') as version"
WHO: LiteralString = """
select session_user::text as login, current_user::text as acting,
    rolsuper as is_superuser, rolbypassrls as bypasses
from pg_roles where rolname = current_user
"""
WORKERS: LiteralString = """
select w.executor from traffic.workers as w
where w.stopped_at is null and not w.is_draining and w.heartbeat_at > clock_timestamp() - $1::interval
order by w.started_at limit 20
"""
# Admitted runs only: a run that waits for its own account's limit is not a backlog of the workers.
QUEUED: LiteralString = """
select count(*) as queued_count,
    coalesce(extract(epoch from clock_timestamp() - min(r.admitted_at)), 0)::float8 as oldest_wait_s
from public.runs as r where r.status = 'queued' and r.admitted_at is not null
"""
SILENT_AFTER = timedelta(seconds=10)
NO_CLAIMS = "{}"


class BacklogFound(msgspec.Struct, frozen=True, kw_only=True):
    executors: list[str]  # with a recent heartbeat, and not draining
    queued_count: int
    oldest_wait_s: float


class DatabaseHealthChecks:
    def __init__(self, database: Database, migrations: list[Migration]) -> None:
        self._migrations = migrations
        self._database = database
        self._session = database.admin("health")

    async def version(self) -> str:
        (row,) = await self._session.fetch(VERSION)
        return f"PostgreSQL {row['version']}"

    async def migrations(self) -> tuple[int, list[str], list[str]]:
        """Returns the number of applied migrations, the pending ones, and those changed after being applied.
        Migrations of a newer version are harmless: it migrates before its processes replace ours.
        """
        applied = {row["name"]: row["checksum"] for row in await self._session.fetch(APPLIED)}
        pending = [migration.name for migration in self._migrations if migration.name not in applied]
        changed = [
            migration.name
            for migration in self._migrations
            if applied.get(migration.name, migration.checksum) != migration.checksum
        ]
        return len(applied), pending, changed

    async def work(self) -> BacklogFound:
        workers = await self._session.fetch(WORKERS, SILENT_AFTER)
        (queued,) = await self._session.fetch(QUEUED)
        return BacklogFound(executors=[row["executor"] for row in workers], **queued)

    async def roles_are_separate(self) -> bool:
        """True when row level security applies to the user role only, and neither role is a superuser."""
        caller = self._database.user(NO_CLAIMS)
        async with caller.transaction():
            (user,) = await caller.fetch(WHO)
        (admin,) = await self._session.fetch(WHO)
        return (
            not user["bypasses"]
            and not user["is_superuser"]
            and admin["bypasses"]
            and not admin["is_superuser"]
            and user["login"] != admin["login"]
        )
