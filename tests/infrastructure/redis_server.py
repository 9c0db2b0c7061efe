"""A Redis or Valkey of the tests' own, where one is installed."""

import asyncio
import shutil
from contextlib import asynccontextmanager

from tests.support import answers, free_port, until

BINARY = shutil.which("valkey-server") or shutil.which("redis-server")
PASSWORD = "canary"


def address_of(port):
    return f"redis://:{PASSWORD}@127.0.0.1:{port}/0"


@asynccontextmanager
async def redis_server(folder, port=None):
    """Its port. Killed at the end: it keeps nothing."""
    port = port or free_port()
    process = await asyncio.create_subprocess_exec(
        *(BINARY, "--port", str(port), "--bind", "127.0.0.1", "--requirepass", PASSWORD),
        *("--save", "", "--appendonly", "no", "--dir", str(folder)),
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        await until(lambda: answers(port) or process.returncode is not None)
        assert process.returncode is None, "the server did not start"
        yield port
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
