"""Program that moves credits in transactions of several steps, as fast as possible, until it is killed."""

import asyncio
import sys
import uuid

import asyncpg


async def main(url, account_id):
    connections = [
        await asyncpg.connect(url, server_settings={"application_name": "killed_client"}) for _ in range(4)
    ]
    await asyncio.gather(*(move(connection, account_id) for connection in connections))


async def move(connection, account_id):
    while True:
        reference = str(uuid.uuid4())
        async with connection.transaction():
            await connection.execute("select ledger.place_hold($1, 3, $2, 'analysis')", account_id, reference)
            await connection.execute("select ledger.settle_hold($1, $2, 2)", account_id, reference)
            await connection.execute("select ledger.refund_charge($1, $2, 1, $2)", account_id, reference)


asyncio.run(main(sys.argv[1], uuid.UUID(sys.argv[2])))
