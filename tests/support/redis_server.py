"""Redis or Valkey server for tests, if one is installed."""

import asyncio
from contextlib import asynccontextmanager

from tests.support import free_port
from tests.support.optional_programs import path_of

PASSWORD = "canary"


def address_of(port):
    return f"redis://:{PASSWORD}@127.0.0.1:{port}/0"


@asynccontextmanager
async def redis_server(folder, port=None):
    """Yields its port. Killed at the end, because it stores nothing."""
    port = port or free_port()
    process = await asyncio.create_subprocess_exec(
        *(path_of("redis"), "--port", str(port), "--bind", "127.0.0.1", "--requirepass", PASSWORD),
        *("--save", "", "--appendonly", "no", "--dir", str(folder)),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        # Reads the server's own output, because another server may listen on the port.
        while b"eady to accept connections" not in (line := await process.stdout.readline()):
            assert line, "the server did not start"
        yield port
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
