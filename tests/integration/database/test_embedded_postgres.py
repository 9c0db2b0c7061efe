"""Embedded server: shared by processes, restarted after a kill, stopped by the last user."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import asyncpg
import pytest

from infrastructure.database.embedded_postgres import EmbeddedPostgres, PostgresStartFailed, embedded_postgres
from tests.support import until

USER = Path(__file__).parent / "embedded_user.py"


@pytest.fixture
def server(tmp_path):
    server = EmbeddedPostgres(tmp_path / "postgres")
    yield server
    server.stop()


async def works(server):
    try:
        connection = await asyncpg.connect(server.url("postgres"), timeout=5)
    except (OSError, asyncpg.PostgresError, TimeoutError):
        return False
    answer = await connection.fetchval("select 1")
    await connection.close()
    return answer == 1


def pid_of(server):
    return int((server._data / "postmaster.pid").read_text().split("\n")[0])  # noqa: SLF001


async def another_process(folder):
    """A second user of the same server, which reports when it has started."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        USER,
        str(folder),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    while line := await process.stdout.readline():
        if line == b"started\n":
            return process
    raise AssertionError("it ended before it had started")


async def test_the_last_user_stops_the_server(server, tmp_path):
    server.start()
    other = await another_process(tmp_path / "postgres")

    server.stop()
    assert await works(server)
    other.stdin.close()
    await other.wait()

    assert not await works(server)


async def test_a_killed_user_does_not_keep_the_server_running(server, tmp_path):
    server.start()
    other = await another_process(tmp_path / "postgres")
    other.kill()
    await other.wait()
    assert await works(server)

    server.stop()

    assert not await works(server)


async def test_processes_that_start_concurrently_share_one_server(server, tmp_path):
    others = await asyncio.gather(*(another_process(tmp_path / "postgres") for _ in range(3)))
    server.start()

    assert await works(server)
    for other in others:
        other.stdin.close()
        await other.wait()


async def test_killed_server_restarts_without_data_loss(tmp_path):
    async with embedded_postgres(tmp_path / "postgres", "kept") as server:
        connection = await asyncpg.connect(server.url("kept"))
        await connection.execute("create table kept as select 42 as answer")
        old = pid_of(server)
        os.kill(old, signal.SIGKILL)

        await until(lambda: not server._answers() or pid_of(server) != old)  # noqa: SLF001
        await until(lambda: works(server))

        connection = await asyncpg.connect(server.url("kept"))
        assert await connection.fetchval("select answer from kept") == 42
        await connection.close()


async def test_a_folder_with_a_long_path_works(tmp_path):
    server = EmbeddedPostgres(tmp_path / ("long" * 30))
    server.start()

    assert await works(server)
    server.stop()


async def test_failed_start_reports_the_servers_message(tmp_path):
    server = EmbeddedPostgres(tmp_path / "postgres", options=("no_such_setting=1",))

    with pytest.raises(PostgresStartFailed, match="no_such_setting"):
        server.start()
