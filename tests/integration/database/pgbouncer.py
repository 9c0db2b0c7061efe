"""Transaction pooler in front of the test database, where PgBouncer is installed."""

import asyncio
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from core.wiring.bootstrap import DatabaseUrls
from infrastructure.database.embedded_postgres import _server_owner
from tests.support import answers, free_port, until
from tests.support.optional_programs import path_of

CONFIGURATION = """
[databases]
{database} = host={host} dbname={database}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 200
server_reset_query =
ignore_startup_parameters = extra_float_digits
"""


def settings_for(addresses, port, user):
    parts = urlsplit(addresses)
    database, host = parts.path.lstrip("/"), parse_qs(parts.query)["host"][0]
    text = CONFIGURATION.format(database=database, host=host, port=port)
    # auth_type any supports one server user only, so each of the two roles needs its own pooler.
    return text.replace(f"dbname={database}", f"dbname={database} user={user}"), database


@asynccontextmanager
async def one_pooler(address, folder, user):
    port = free_port()
    text, database = settings_for(address, port, user)
    path = folder / f"{user}.ini"
    path.write_text(text)
    command = [str(path_of("pgbouncer")), "-q", str(path)]
    # PgBouncer refuses to run as root, and must reach both its file and the server's socket.
    if (account := _server_owner()) is not None:
        for parent in path.parents:
            parent.chmod(parent.stat().st_mode | 0o001)
        options = {"user": account.pw_uid, "group": account.pw_gid}
    else:
        options = {}
    process = await asyncio.create_subprocess_exec(*command, cwd="/", **options)
    try:
        await until(lambda: answers(port) or process.returncode is not None)
        assert process.returncode is None, "pgbouncer did not start"
        yield f"postgresql://{user}@127.0.0.1:{port}/{database}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@asynccontextmanager
async def transaction_pooler(addresses, folder):
    async with (
        one_pooler(addresses.user, folder, "app_user") as user,
        one_pooler(addresses.admin, folder, "app_admin") as admin,
    ):
        yield DatabaseUrls(owner="", user=user, admin=admin)
