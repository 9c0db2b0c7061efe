"""Questions the health page asks of the database."""

from datetime import timedelta
from typing import LiteralString

import msgspec

from infrastructure.database.clients import Database
from infrastructure.database.migrate import APPLIED, read_migrations

VERSION: LiteralString = "select current_setting('server_version') as version"
WHO: LiteralString = """
select session_user::text as login, current_user::text as acting,
    rolsuper as is_superuser, rolbypassrls as bypasses
from pg_roles where rolname = current_user
"""
WORKERS: LiteralString = """
select w.executor from traffic.workers as w
where w.gone_at is null and not w.is_draining and w.heartbeat_at > clock_timestamp() - $1::interval
order by w.started_at limit 20
"""
# Runs that have their turn; those that wait for their account's are nobody's delay.
QUEUED: LiteralString = """
select count(*) as queued_count,
    coalesce(extract(epoch from clock_timestamp() - min(r.admitted_at)), 0)::float8 as oldest_wait_s
from public.runs as r where r.status = 'queued' and r.admitted_at is not null
"""
SILENT_AFTER = timedelta(seconds=10)
NOBODY = "{}"


class BacklogFound(msgspec.Struct, frozen=True, kw_only=True):
    executors: list[str]  # those that are heard of and take more
    queued_count: int
    oldest_wait_s: float


class DatabaseHealthChecks:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._session = database.admin("health")

    async def version(self) -> str:
        (row,) = await self._session.fetch(VERSION)
        return f"PostgreSQL {row['version']}"

    async def migrations(self) -> tuple[int, list[str], list[str]]:
        """How many are applied, which wait, and which were changed after they had been applied. Ones of
        a newer version do no harm: it migrates before its processes replace ours.
        """
        applied = {row["name"]: row["checksum"] for row in await self._session.fetch(APPLIED)}
        known = read_migrations()
        waiting = [migration.name for migration in known if migration.name not in applied]
        changed = [
            migration.name
            for migration in known
            if applied.get(migration.name, migration.checksum) != migration.checksum
        ]
        return len(applied), waiting, changed

    async def work(self) -> BacklogFound:
        workers = await self._session.fetch(WORKERS, SILENT_AFTER)
        (queued,) = await self._session.fetch(QUEUED)
        return BacklogFound(executors=[row["executor"] for row in workers], **queued)

    async def roles_are_separate(self) -> bool:
        """Callers are subject to row level security, the system is not, and neither is a superuser."""
        caller = self._database.user(NOBODY)
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
