"""Questions the health page asks of the database."""

from typing import LiteralString

from infrastructure.database.migrate import APPLIED, read_migrations
from infrastructure.database.sessions import Database

VERSION: LiteralString = "select current_setting('server_version') as version"
WHO: LiteralString = """
select session_user::text as login, current_user::text as acting,
    rolsuper as is_superuser, rolbypassrls as bypasses
from pg_roles where rolname = current_user
"""
NOBODY = "{}"


class DatabaseProbes:
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
