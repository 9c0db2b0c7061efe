"""Forward-only migrations: SQL files in order, each applied once in its own transaction."""

from __future__ import annotations  # asyncpg's classes are generic in their stubs only

import hashlib
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import LiteralString

import asyncpg
import msgspec
from asyncpg import Connection, Record

from infrastructure.database.clients import DatabaseUnavailable
from infrastructure.database.urls import ADMIN_ROLE, USER_ROLE, role_password

FOLDER = Path(__file__).parent / "migrations"
FILE_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
LOCK_KEY = 7_305_803_401
LOCK_TIMEOUT_S = 30
STATEMENT_TIMEOUT_S = 600
NO_FOLDERS: Mapping[str, Path] = MappingProxyType({})

RECORDS: LiteralString = """
create schema if not exists oslira;
create table if not exists oslira.migrations (
    name text primary key,
    checksum text not null,
    applied_at timestamptz not null default now()
);
alter table oslira.migrations enable row level security;
alter table oslira.migrations force row level security;
"""

OWNER: LiteralString = """
select current_user as name, current_setting('server_version_num')::int as version,
    (select rolsuper or rolbypassrls from pg_roles where rolname = current_user) as may_bypass
"""

APPLIED: LiteralString = "select name, checksum from oslira.migrations"
RECORD: LiteralString = "insert into oslira.migrations (name, checksum) values ($1, $2)"


class MigrationFailed(RuntimeError):
    pass


class MigrationsDiffer(MigrationFailed):
    """The database was migrated by another version."""


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    sql: str

    @property
    def folder(self) -> str:
        return self.name.rpartition("/")[0]

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def read_migrations(folder: Path = FOLDER, slice_folders: Mapping[str, Path] = NO_FOLDERS) -> list[Migration]:
    """Returns the common migrations, then those of each slice, whose names begin with the slice's name."""
    own = (_read(folder, f"{name}/") for name, folder in slice_folders.items())
    return [*_read(folder), *itertools.chain.from_iterable(own)]


def _read(folder: Path, prefix: str = "") -> list[Migration]:
    paths = sorted(folder.glob("*.sql"))
    for number, path in enumerate(paths, start=1):
        match = FILE_NAME.fullmatch(path.name)
        if match is None or int(match[1]) != number:
            raise MigrationFailed(
                f"{path.name} should be named {number:04d}_what_it_does.sql: files are applied in order."
            )
    return [Migration(name=prefix + path.name, sql=path.read_text("utf-8")) for path in paths]


def pending(migrations: list[Migration], applied: dict[str, str]) -> list[Migration]:
    """Returns the migrations to apply; raises when the applied ones differ from the files."""
    known = {migration.name: migration for migration in migrations}
    for name, checksum in applied.items():
        if name not in known:
            raise MigrationsDiffer(
                f"The database has the migration {name}, which this version does not know. Run the version"
                " that applied it, or a newer one."
            )
        if known[name].checksum != checksum:
            raise MigrationsDiffer(
                f"{name} was applied and has been changed since. Restore the file and put the change"
                " into a new migration."
            )
    waiting = [migration for migration in migrations if migration.name not in applied]
    for first, second in itertools.pairwise(migrations):
        if first.folder == second.folder and first in waiting and second.name in applied:
            raise MigrationFailed(f"{first.name} comes before one that is already applied.")
    return waiting


async def migrate(
    url: str,
    *,
    set_passwords: bool = True,
    folder: Path = FOLDER,
    slice_folders: Mapping[str, Path] = NO_FOLDERS,
) -> list[str]:
    """Applies the pending migrations and returns their names. Safe for concurrent processes."""
    migrations = read_migrations(folder, slice_folders)
    try:
        # No statement cache: the owner's address may be that of a transaction pooler.
        connection = await asyncpg.connect(url, timeout=10, statement_cache_size=0)
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        raise DatabaseUnavailable from error
    try:
        await _check_owner(connection)
        async with connection.transaction():
            await _lock(connection)
            await connection.execute(RECORDS)
        names: list[str] = []
        while name := await _apply_next(connection, migrations):
            names.append(name)
        if set_passwords:
            await _set_passwords(connection, url)
    finally:
        await connection.close()
    return names


async def _apply_next(connection: Connection[Record], migrations: list[Migration]) -> str | None:
    # The lock belongs to the transaction, because a pooler may share a session between two processes.
    async with connection.transaction():
        await _lock(connection)
        applied = {row["name"]: row["checksum"] for row in await connection.fetch(APPLIED)}
        waiting = pending(migrations, applied)
        if not waiting:
            return None
        migration = waiting[0]
        await connection.execute(migration.sql)
        await connection.execute(RECORD, migration.name, migration.checksum)
        return migration.name


async def _lock(connection: Connection[Record]) -> None:
    await connection.execute(
        f"set local lock_timeout = '{LOCK_TIMEOUT_S}s';"
        f"set local statement_timeout = '{STATEMENT_TIMEOUT_S}s';"
        f"select pg_advisory_xact_lock({LOCK_KEY})"
    )


async def _check_owner(connection: Connection[Record]) -> None:
    (owner,) = await connection.fetch(OWNER)
    if owner["version"] < 150_000:  # noqa: PLR2004  PostgreSQL's version number
        raise MigrationFailed("Oslira needs PostgreSQL 15 or later.")
    if not owner["may_bypass"]:
        raise MigrationFailed(
            f"The ledger's functions belong to {owner['name']}, which therefore needs BYPASSRLS:"
            f" row level security is forced on every table, owners included. As a superuser run"
            f' alter role "{owner["name"]}" bypassrls; (Supabase\'s postgres has it).'
        )


async def _set_passwords(connection: Connection[Record], owner_url: str) -> None:
    for role in (USER_ROLE, ADMIN_ROLE):
        password = role_password(owner_url, role)
        if password is None:
            return
        # The statement takes no parameters; format() quotes the password, so that it cannot inject SQL.
        (row,) = await connection.fetch(
            "select format('alter role %I password %L', $1::text, $2::text) as statement",
            role,
            password,
        )
        await connection.execute(row["statement"])
