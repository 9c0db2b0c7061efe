"""Program that holds a slot until it is killed."""

import asyncio
import sys

from infrastructure.database.clients import connect
from infrastructure.database.semaphore import PostgresSemaphore


async def main(url, name, lifetime_s):
    async def address():
        return url

    async with (
        connect(user_url=address, admin_url=address, pool_size=2, statement_cache=True) as database,
        PostgresSemaphore(database, lifetime_s=float(lifetime_s)).acquire(name, 1),
    ):
        print("held", flush=True)  # noqa: T201
        await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
