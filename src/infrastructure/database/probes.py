"""Questions the health page asks of the database."""

from typing import LiteralString

from infrastructure.database.migrate import pending, read_migrations
from infrastructure.database.sessions import Database

VERSION: LiteralString = "select current_setting('server_version') as version"
APPLIED: LiteralString = "select name, checksum from oslira.migrations"
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

    async def migrations(self) -> tuple[int, int]:
        """How many are applied and how many wait."""
        applied = {row["name"]: row["checksum"] for row in await self._session.fetch(APPLIED)}
        return len(applied), len(pending(read_migrations(), applied))

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
