import asyncio
import itertools
import uuid

import asyncpg
import pytest

from core.settings.settings import Settings
from core.wiring.bootstrap import DatabaseUrls, apply_migrations
from infrastructure.database.migrate import MigrationFailed, migrate, read_migrations

FIRST = "create table things (id int);"
SECOND = "create table more_things (id int);"


@pytest.fixture
async def empty_url(cluster):
    """An empty database."""
    name = f"m_{uuid.uuid4().hex[:12]}"
    connection = await asyncpg.connect(cluster.url("postgres"))
    await connection.execute(f'create database "{name}"')
    yield cluster.url(name)
    await connection.execute(f'drop database "{name}" with (force)')
    await connection.close()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "0001_first.sql").write_text(FIRST)
    (tmp_path / "0002_second.sql").write_text(SECOND)
    return tmp_path


async def tables(url):
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("select tablename from pg_tables where schemaname = 'public' order by 1")
    await connection.close()
    return [row["tablename"] for row in rows]


async def test_the_migrations_apply_once_in_order(empty_url):
    first = await migrate(empty_url)
    second = await migrate(empty_url)

    assert first == [migration.name for migration in read_migrations()]
    assert second == []


async def test_concurrent_processes_apply_each_migration_once(empty_url, folder):
    applied = await asyncio.gather(*(migrate(empty_url, folder=folder) for _ in range(6)))

    assert sorted(itertools.chain(*applied)) == ["0001_first.sql", "0002_second.sql"]
    assert await tables(empty_url) == ["more_things", "things"]


async def test_changed_migration_is_rejected_by_name(empty_url, folder):
    await migrate(empty_url, folder=folder)
    (folder / "0001_first.sql").write_text(FIRST + "\n-- an afterthought")

    with pytest.raises(MigrationFailed, match=r"0001_first.sql was applied and has been changed"):
        await migrate(empty_url, folder=folder)


async def test_database_of_a_newer_version_is_rejected(empty_url, folder):
    await migrate(empty_url, folder=folder)
    (folder / "0002_second.sql").unlink()

    with pytest.raises(MigrationFailed, match="Run the version that applied it"):
        await migrate(empty_url, folder=folder)


@pytest.mark.parametrize("is_embedded", [True, False])
async def test_only_the_embedded_database_of_another_version_may_be_deleted(
    empty_url, folder, tmp_path, is_embedded
):
    await migrate(empty_url, folder=folder)
    settings = Settings(data_dir=tmp_path, database_url="" if is_embedded else empty_url)
    urls = DatabaseUrls(owner=empty_url, user="", admin="")

    with pytest.raises(MigrationFailed, match="Run the version that applied it") as failure:
        await apply_migrations(settings, urls, {})

    assert (f"delete the folder {tmp_path}" in str(failure.value)) is is_embedded


async def test_failed_migration_is_rolled_back(empty_url, folder):
    (folder / "0002_second.sql").write_text(SECOND + "select 1/0;")

    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(empty_url, folder=folder)

    assert await tables(empty_url) == ["things"]


@pytest.mark.parametrize("name", ["0003_gap.sql", "0001_Upper.sql", "second.sql"])
async def test_file_out_of_order_is_rejected(tmp_path, name):
    (tmp_path / name).write_text(FIRST)

    with pytest.raises(MigrationFailed, match="should be named 0001_"):
        read_migrations(tmp_path)


async def test_migrations_apply_on_supabases_existing_roles_and_functions(empty_url):
    connection = await asyncpg.connect(empty_url)
    await connection.execute("""
        create schema auth;
        create function auth.uid() returns uuid language sql stable as $$ select null::uuid $$;
        create function auth.jwt() returns jsonb language sql stable
            as $$ select '{"theirs": true}'::jsonb $$;
    """)

    await migrate(empty_url)

    assert await connection.fetchval("select auth.jwt() ->> 'theirs'") == "true"
    await connection.close()
